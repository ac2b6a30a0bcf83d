-- Several engines on one knowledge base: the log that all of them follow, which of them live, and what they work on.

-- One row for each write that searches or decisions may depend on, in the order of their commits, without a gap.
CREATE TABLE changes (
    seq          bigint PRIMARY KEY,
    write_id     uuid NOT NULL UNIQUE,              -- tells, when the answer to a COMMIT is lost, whether it took place
    kind         text COLLATE "C" NOT NULL,         -- documents: the index changes by these; index: all of it; other: not at all
    document_ids bigint[] NOT NULL,
    told         text COLLATE "C" NOT NULL,         -- what listeners hear, as JSON
    engine       text COLLATE "C" NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- An engine has a row while it lives: it removes the row at its end, or another does when it was not seen for a while.
CREATE TABLE engines (
    id          text COLLATE "C" PRIMARY KEY,       -- of one run
    place       text COLLATE "C" NOT NULL,          -- machine and data folder: there is one engine in it at a time
    address     text COLLATE "C" NOT NULL,
    version     text COLLATE "C" NOT NULL,
    state       text COLLATE "C" NOT NULL,          -- starting, serving, draining
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    applied_seq bigint NOT NULL DEFAULT 0
);

-- Chunks that are being written. Those of an engine that died are removed.
CREATE TABLE drafts (
    document_id bigint NOT NULL,
    revision    bigint NOT NULL,                    -- 0: only the row of the document was reserved
    engine      text COLLATE "C" NOT NULL,
    PRIMARY KEY (document_id, revision)
);

-- Who runs a job, until when at most. With `attempts` and `started_at`, it tells one run of a job from the next.
ALTER TABLE jobs ADD COLUMN claimed_by text COLLATE "C", ADD COLUMN lease_until timestamptz;

-- Every engine may write: the row is locked by one at a time.
ALTER TABLE head DROP COLUMN engine;
