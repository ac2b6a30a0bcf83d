// One text through the encoder of all-MiniLM-L6-v2. `encoder.py` is its only caller; docs/decisions/011 has the reasons.
//
// A query has a dozen tokens: little to compute, but it needs all weights, 43 MB in float32, which memory takes 2 ms to
// deliver. So here they have 16 bits, are stored in the order of use, and are prefetched. The products depend on the
// processor, with one header for each kind; sums are float32. Each number is computed by one thread in a fixed order, so a
// text gives the same vector on any number of threads.
//
// Threads share the work of a text by taking the next part from a board. No thread waits for a helper that still sleeps;
// if a helper loses its core, the others wait only for the part that it has taken.

#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../core/cpu.h"

#include PRODUCTS // encoder_f32.h or encoder_bf16.h, which also sets the instructions for the code below

enum {
    WORDS = 30522,
    POSITIONS = 512,
    HIDDEN = 384,
    INNER = 1536,
    HEADS = 12,
    HEAD = HIDDEN / HEADS,
    LAYERS = 6,
    PATIENCE = 100, // looks at the board, some 2 us, before the thread yields its core
    MOST_HELPERS = 15,
};

// Filled in by `encoder.py`. Everything is borrowed and must outlive the encoder.
typedef struct {
    const Weight *weights;
    const float *scale; // [outputs]
    const float *bias;  // [outputs]
} Linear;

typedef struct {
    const float *weight, *bias;
} Norm;

typedef struct {
    Linear projection; // queries, keys and values, in this order
    Linear joining;
    Norm attended;
    Linear widening;
    Linear narrowing;
    Norm done;
} Layer;

typedef struct {
    const float *words, *positions, *segment;
    Norm embedded;
    Layer layers[LAYERS];
} Weights;

// The steps of a layer. A step begins when the one before is complete.
enum Step { PROJECT, ATTEND, JOIN, NORMALISE_ATTENDED, WIDEN, NARROW, NORMALISE, STEPS };

// The board holds the number of the stage (a step of a layer) and, in the last 16 bits, of its next part. The count of stages
// continues from text to text, so no value occurs twice. In the stage after a text's last one, threads rest.
enum { STAGES = LAYERS * STEPS, PART_BITS = 16 };

typedef struct {
    Weights weights;
    atomic_int length; // of the text; atomic, since a late helper may read it while the next text begins
    float x[POSITIONS * HIDDEN], projected[POSITIONS * 3 * HIDDEN], sum[POSITIONS * HIDDEN];
    Input given[POSITIONS * HIDDEN], inner[POSITIONS * INNER]; // inputs of products

    _Alignas(64) atomic_uint_fast64_t board;
    _Alignas(64) atomic_int done; // completed parts of the stage on the board
    pthread_mutex_t lock;
    pthread_cond_t begun;
    bool closing; // behind the lock
    int helpers;
    pthread_t threads[MOST_HELPERS];
} Encoder;

typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t EightBits __attribute__((vector_size(32), may_alias));

static inline Eight all(float value) { return _mm256_set1_ps(value); }
static inline Eight load(const float *from) { return *(const Eight *)from; }
static inline void store(float *to, Eight values) { *(Eight *)to = values; }

static inline float total(Eight v) {
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

// e to the power of x for x <= 0, exact but for the last digit or two: 2^n times a polynomial of the remainder.
static inline Eight power(Eight x) {
    x = _mm256_max_ps(x, all(-87));
    Eight n = _mm256_round_ps(x * all(1.44269504f), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    Eight r = x - n * all(0.693359375f) + n * all(2.12194440e-4f); // ln 2 in two parts
    Eight p = all(1.9875691e-4f);
    p = p * r + all(1.3981999e-3f);
    p = p * r + all(8.3334519e-3f);
    p = p * r + all(4.1665795e-2f);
    p = p * r + all(1.6666665e-1f);
    p = p * r + all(5.0000001e-1f);
    p = p * r * r + r + all(1);
    return p * (Eight)((__builtin_convertvector(n, EightBits) + 127) << 23);
}

// x times the share of the normal distribution below it. The error function is Abramowitz and Stegun's 7.1.26, which is
// right to 1.5e-7.
static inline Eight gelu(Eight x) {
    const EightBits sign = (EightBits)all(-0.0f);
    Eight z = x * all(0.70710678f);
    Eight size = (Eight)((EightBits)z & ~sign);
    Eight t = all(1) / (all(1) + all(0.3275911f) * size);
    Eight p = all(1.061405429f);
    p = p * t + all(-1.453152027f);
    p = p * t + all(1.421413741f);
    p = p * t + all(-0.284496736f);
    p = p * t + all(0.254829592f);
    Eight erf = (Eight)((EightBits)(all(1) - p * t * power(-size * size)) | ((EightBits)z & sign));
    return x * all(0.5f) * (all(1) + erf);
}

static void normalise(Encoder *own, int token, Norm norm) {
    const float *from = own->sum + token * HIDDEN;
    Eight sum = all(0), squares = all(0);
    for (int i = 0; i < HIDDEN; i += 8) sum += load(from + i);
    Eight mean = all(total(sum) / HIDDEN);
    for (int i = 0; i < HIDDEN; i += 8) {
        Eight off = load(from + i) - mean;
        squares += off * off;
    }
    Eight scale = all(1 / sqrtf(total(squares) / HIDDEN + 1e-12f));
    for (int i = 0; i < HIDDEN; i += 8) {
        Eight value = (load(from + i) - mean) * scale * load(norm.weight + i) + load(norm.bias + i);
        store(own->x + token * HIDDEN + i, value);
        put(own->given + token * HIDDEN + i, value);
    }
}

// One panel of outputs for all tokens: weights times `from`, plus bias. With `curved`, its GELU goes there; otherwise the sum
// with `residual`, if any, goes to `to`.
static void linear(const Linear *own, int panel, int length, const Input *from, int inputs, int outputs, float *to,
                   const float *residual, Input *curved) {
    const Weight *weights = own->weights + (size_t)panel * PANEL * inputs;
    int tiles = (length + TILE - 1) / TILE;
    for (int first = 0; tiles > 0; tiles--) {
        int rows = (length - first + tiles - 1) / tiles; // 13 tokens are 5, 4 and 4, not 6, 6 and 1
        float sums[TILE][PANEL];
        tile(rows, weights, from + (size_t)first * inputs, inputs, sums);
        for (int row = 0; row < rows; row++)
            for (int i = 0; i < PANEL; i += 8) {
                int column = panel * PANEL + i;
                size_t at = (size_t)(first + row) * outputs + column;
                Eight value = load(sums[row] + i) * load(own->scale + column) + load(own->bias + column);
                if (curved)
                    put(curved + at, gelu(value));
                else
                    store(to + at, residual ? value + load(residual + at) : value);
            }
        first += rows;
    }
}

// Softmax. Scores beyond `length` get the weight 0.
static void soften(float *scores, int length, int padded) {
    Eight highest = all(-INFINITY), sum = all(0);
    for (int of = length; of < padded; of++) scores[of] = -INFINITY;
    for (int of = 0; of < padded; of += 8) highest = _mm256_max_ps(highest, load(scores + of));
    float top = highest[0];
    for (int i = 1; i < 8; i++) top = fmaxf(top, highest[i]);
    for (int of = 0; of < padded; of += 8) store(scores + of, power(load(scores + of) - all(top)));
    for (int of = 0; of < padded; of += 8) sum += load(scores + of);
    Eight share = all(1 / total(sum));
    for (int of = 0; of < padded; of += 8) store(scores + of, load(scores + of) * share);
}

// One head for all tokens, four at a time, so that no sum waits for the one before. Beyond the last token, it is repeated.
static void attend(Encoder *own, int head) {
    enum { TOGETHER = 4, KEYS = 16, BLOCKS = HEAD / 8 };
    const int length = own->length, padded = (length + KEYS - 1) / KEYS * KEYS, stride = 3 * HIDDEN;
    const float *queries = own->projected + head * HEAD, *keys = queries + HIDDEN, *values = keys + HIDDEN;
    float across[HEAD][POSITIONS], weights[TOGETHER][POSITIONS];

    for (int of = 0; of < padded; of++)
        for (int i = 0; i < HEAD; i++) across[i][of] = of < length ? keys[of * stride + i] : 0;
    for (int first = 0; first < length; first += TOGETHER) {
        const float *query[TOGETHER];
        for (int row = 0; row < TOGETHER; row++) query[row] = queries + (first + row < length ? first + row : length - 1) * stride;
        for (int of = 0; of < padded; of += KEYS) {
            Eight scores[TOGETHER][2] = {};
            for (int i = 0; i < HEAD; i++)
                for (int row = 0; row < TOGETHER; row++) {
                    Eight value = all(query[row][i] * 0.17677669529663687f); // 1 / sqrt(HEAD)
                    scores[row][0] = _mm256_fmadd_ps(value, load(across[i] + of), scores[row][0]);
                    scores[row][1] = _mm256_fmadd_ps(value, load(across[i] + of + 8), scores[row][1]);
                }
            for (int row = 0; row < TOGETHER; row++)
                store(weights[row] + of, scores[row][0]), store(weights[row] + of + 8, scores[row][1]);
        }
        for (int row = 0; row < TOGETHER; row++) soften(weights[row], length, padded);
        for (int row = 0; row < TOGETHER; row += 2) {
            Eight mixed[2][BLOCKS] = {};
            for (int of = 0; of < length; of++)
                for (int i = 0; i < BLOCKS; i++) {
                    Eight value = load(values + of * stride + i * 8);
                    mixed[0][i] = _mm256_fmadd_ps(all(weights[row][of]), value, mixed[0][i]);
                    mixed[1][i] = _mm256_fmadd_ps(all(weights[row + 1][of]), value, mixed[1][i]);
                }
            for (int half = 0; half < 2 && first + row + half < length; half++)
                for (int i = 0; i < BLOCKS; i++)
                    put(own->given + (size_t)(first + row + half) * HIDDEN + head * HEAD + i * 8, mixed[half][i]);
        }
    }
}

static void embed(Encoder *own, const int64_t *ids) {
    const Weights *given = &own->weights;
    for (int token = 0; token < own->length; token++) {
        const float *word = given->words + ids[token] * HIDDEN, *position = given->positions + token * HIDDEN;
        float *to = own->sum + token * HIDDEN;
        for (int i = 0; i < HIDDEN; i += 8) store(to + i, load(word + i) + load(given->segment + i) + load(position + i));
        normalise(own, token, given->embedded);
    }
}

// The mean of all tokens, at unit length.
static void pool(const Encoder *own, float *vector) {
    Eight squares = all(0);
    for (int i = 0; i < HIDDEN; i += 8) {
        Eight sum = all(0);
        for (int token = 0; token < own->length; token++) sum += load(own->x + token * HIDDEN + i);
        store(vector + i, sum);
        squares += sum * sum;
    }
    Eight scale = all(1 / fmaxf(sqrtf(total(squares)), 1e-12f));
    for (int i = 0; i < HIDDEN; i += 8) store(vector + i, load(vector + i) * scale);
}

// Number of outputs, heads or tokens of a step, and how many of them are one part: 4 to 20 us for a query.
static inline int extent(enum Step step, int length) {
    switch (step) {
    case PROJECT: return 3 * HIDDEN / PANEL;
    case ATTEND: return HEADS;
    case WIDEN: return INNER / PANEL;
    case JOIN:
    case NARROW: return HIDDEN / PANEL;
    default: return length;
    }
}

static inline int portion(enum Step step) {
    static const int sizes[STEPS] = {[PROJECT] = 4, [ATTEND] = 3, [JOIN] = 3,     [NORMALISE_ATTENDED] = 8,
                                     [WIDEN] = 4,   [NARROW] = 1, [NORMALISE] = 8};
    return sizes[step];
}

static void perform(Encoder *own, const Layer *layer, enum Step step, int at) {
    const int length = own->length;
    switch (step) {
    case PROJECT: return linear(&layer->projection, at, length, own->given, HIDDEN, 3 * HIDDEN, own->projected, NULL, NULL);
    case ATTEND: return attend(own, at);
    case JOIN: return linear(&layer->joining, at, length, own->given, HIDDEN, HIDDEN, own->sum, own->x, NULL);
    case NORMALISE_ATTENDED: return normalise(own, at, layer->attended);
    case WIDEN: return linear(&layer->widening, at, length, own->given, HIDDEN, INNER, NULL, NULL, own->inner);
    case NARROW: return linear(&layer->narrowing, at, length, own->inner, INNER, HIDDEN, own->sum, own->x, NULL);
    default: return normalise(own, at, layer->done);
    }
}

static inline int stage_of(uint64_t board) { return (int)((board >> PART_BITS) % (STAGES + 1)); }

// Take parts until the text is done.
static void work(Encoder *own) {
    int waited = 0;
    for (;;) {
        uint64_t board = atomic_load_explicit(&own->board, memory_order_acquire);
        int stage = stage_of(board), part = (int)(board & ((1 << PART_BITS) - 1));
        if (stage == STAGES) return;
        enum Step step = stage % STEPS;
        int size = portion(step), until = extent(step, own->length), parts = (until + size - 1) / size;
        if (part == parts) { // other threads work on the last ones
            _mm_pause();
            if (++waited % PATIENCE == 0) sched_yield();
            continue;
        }
        if (!atomic_compare_exchange_weak_explicit(&own->board, &board, board + 1, memory_order_acquire, memory_order_relaxed))
            continue;
        for (int at = part * size; at < until && at < (part + 1) * size; at++)
            perform(own, &own->weights.layers[stage / STEPS], step, at);
        if (atomic_fetch_add_explicit(&own->done, 1, memory_order_acq_rel) + 1 == parts) {
            atomic_store_explicit(&own->done, 0, memory_order_relaxed);
            atomic_store_explicit(&own->board, ((board >> PART_BITS) + 1) << PART_BITS, memory_order_release);
        }
        waited = 0;
    }
}

#pragma clang attribute pop

static void *help(void *given) {
    Encoder *own = given;
    for (;;) {
        pthread_mutex_lock(&own->lock);
        while (stage_of(atomic_load(&own->board)) == STAGES && !own->closing) pthread_cond_wait(&own->begun, &own->lock);
        bool closing = own->closing;
        pthread_mutex_unlock(&own->lock);
        if (closing) return NULL;
        work(own);
    }
}

void encoder_close(Encoder *own) {
    pthread_mutex_lock(&own->lock);
    own->closing = true;
    pthread_cond_broadcast(&own->begun);
    pthread_mutex_unlock(&own->lock);
    for (int i = 0; i < own->helpers; i++) pthread_join(own->threads[i], NULL);
    pthread_cond_destroy(&own->begun);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

// Size of `Weights`: a caller of another version has another.
size_t encoder_weights_size(void) { return sizeof(Weights); }

// Outputs of a panel.
int encoder_panel(void) { return PANEL; }

// Whether the processor has the instructions that the products need.
bool encoder_runs_here(void) { return runs_here(); }

// NULL if memory or threads run out. To be called only if `encoder_runs_here`.
Encoder *encoder_open(const Weights *weights, int threads) {
    Encoder *own = aligned_alloc(64, (sizeof(Encoder) + 63) / 64 * 64);
    if (!own) return NULL;
    own->weights = *weights;
    own->helpers = 0;
    own->closing = false;
    atomic_init(&own->done, 0);
    atomic_init(&own->board, (uint64_t)STAGES << PART_BITS);
    pthread_mutex_init(&own->lock, NULL);
    pthread_cond_init(&own->begun, NULL);
    while (own->helpers < threads - 1 && own->helpers < MOST_HELPERS) {
        if (pthread_create(&own->threads[own->helpers], NULL, help, own)) {
            encoder_close(own);
            return NULL;
        }
        own->helpers++;
    }
    return own;
}

// Start the helpers on a text, one at a time; `encoder_finish` gives its unit vector. Return false, and start nothing, if it
// is too short, too long, or has an unknown token.
bool encoder_begin(Encoder *own, const int64_t *ids, int length) {
    if (length < 1 || length > POSITIONS) return false;
    for (int token = 0; token < length; token++)
        if (ids[token] < 0 || ids[token] >= WORDS) return false;
    work(own); // a text that was begun and not finished
    own->length = length;
    embed(own, ids);
    pthread_mutex_lock(&own->lock);
    uint64_t rest = atomic_load(&own->board);
    atomic_store(&own->board, ((rest >> PART_BITS) + 1) << PART_BITS);
    pthread_cond_broadcast(&own->begun);
    pthread_mutex_unlock(&own->lock);
    return true;
}

void encoder_finish(Encoder *own, float *vector) {
    work(own);
    pool(own, vector);
}
