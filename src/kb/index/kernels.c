// The loops of a search, each in one pass over the rows that it is about. `loops.py` is their only caller and says what
// each of them promises; docs/decisions/012 says why they are not left to numpy.
//
// Rows lie one behind the other; `at` says which of them are meant (NULL: all). Those may lie anywhere in memory, so each is
// asked for some rows before it is used.

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __x86_64__
#include "../core/cpu.h"
#else
static bool has_avx2_and_fma(void) { return false; }
#endif

enum {
    LANES = 16,
    LINE = 64, // bytes that memory delivers at a time
    SOON = 24, // rows of signs between what is used and what is asked for
    NEXT = 4,  // rows of vectors, likewise
};

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

static inline int64_t row_of(const int64_t *at, int64_t i) { return at ? at[i] : i; }

static inline void ask_for(const void *row, int64_t bytes) {
    for (int64_t offset = 0; offset < bytes; offset += LINE) __builtin_prefetch((const char *)row + offset);
}

// Added up in one order, whoever else is multiplied: the last digits of a row are always the same.
static inline float product(const float *row, const float *question, int64_t dimensions) {
    Lanes sums = {0};
    int64_t i = 0;
    for (; i + LANES <= dimensions; i += LANES) sums += *(const Lanes *)(row + i) * *(const Lanes *)(question + i);
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
    for (; i < dimensions; i++) sum += row[i] * question[i];
    return sum;
}

static inline int differing(const uint64_t *row, const uint64_t *question, int64_t words) {
    int bits = 0;
    if (words == 6) // of 384 dimensions, the ones that come with kb: unrolled
        for (int i = 0; i < 6; i++) bits += __builtin_popcountll(row[i] ^ question[i]);
    else
        for (int64_t i = 0; i < words; i++) bits += __builtin_popcountll(row[i] ^ question[i]);
    return bits;
}

int64_t loops_located(const int32_t *chunk_ids, const uint16_t *counts, int64_t count, const int32_t *where, int64_t known,
                      const bool *alive, int64_t held, int32_t *places, uint16_t *their_counts) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t place = chunk_ids[i] >= 0 && chunk_ids[i] < known ? where[chunk_ids[i]] : -1;
        if (place < 0 || place >= held || !alive[place]) continue;
        places[found] = (int32_t)place;
        their_counts[found++] = counts[i];
    }
    return found;
}

int64_t loops_totals(const int32_t *places, const uint16_t *counts, int64_t count, const int32_t *owners, int32_t *numbers,
                     uint32_t *totals) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t owner = owners[places[i]];
        if (found == 0 || numbers[found - 1] != owner) {
            numbers[found] = owner;
            totals[found++] = 0;
        }
        totals[found - 1] += counts[i];
    }
    return found;
}

void loops_saturated(const uint32_t *occurrences, const int32_t *lengths, const int32_t *at, int64_t count, float slope,
                     float offset, float scale, float *worth) {
    for (int64_t i = 0; i < count; i++) {
        float often = (float)occurrences[i];
        worth[i] = often / ((float)lengths[at[i]] * slope + offset + often) * scale;
    }
}

void loops_add(const int32_t *places, const float *worth, int64_t count, float *sums) {
    for (int64_t i = 0; i < count; i++) sums[places[i]] += worth[i];
}

int64_t loops_hits(const float *passages, const float *whole, const int32_t *owners, const int64_t *at, int64_t count,
                   int64_t *places, float *scores) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) { // without a branch, which nobody could foresee
        places[found] = row_of(at, i);
        found += passages[row_of(at, i)] > 0;
    }
    for (int64_t i = 0; i < found; i++) scores[i] = sqrtf(passages[places[i]] * whole[owners[places[i]]]);
    return found;
}

void loops_distances(const uint64_t *signs, int64_t words, const uint64_t *question, const int64_t *at, int64_t count,
                     uint16_t *distances) {
    for (int64_t i = 0; i < count; i++) {
        if (at && i + SOON < count) ask_for(signs + at[i + SOON] * words, words * sizeof *signs);
        distances[i] = (uint16_t)differing(signs + row_of(at, i) * words, question, words);
    }
}

void loops_cosines(const float *vectors, int64_t dimensions, const float *question, const int64_t *at, int64_t count,
                   float *cosines) {
    for (int64_t i = 0; i < count; i++) {
        if (at && i + NEXT < count) ask_for(vectors + at[i + NEXT] * dimensions, dimensions * sizeof *vectors);
        cosines[i] = product(vectors + row_of(at, i) * dimensions, question, dimensions);
    }
}

void loops_cosines_with_documents(const float *vectors, const float *wholes, int64_t dimensions, const float *question,
                                  const int32_t *owners, const int32_t *rows, const int64_t *at, int64_t count,
                                  float *cosines) {
    for (int64_t i = 0; i < count; i++) {
        if (i + NEXT < count) {
            ask_for(vectors + at[i + NEXT] * dimensions, dimensions * sizeof *vectors);
            int64_t row = rows[owners[at[i + NEXT]]];
            if (row >= 0) ask_for(wholes + row * dimensions, dimensions * sizeof *wholes);
        }
        float own = product(vectors + at[i] * dimensions, question, dimensions);
        int64_t row = rows[owners[at[i]]];
        float whole = row < 0 ? own : product(wholes + row * dimensions, question, dimensions);
        cosines[i] = (own + whole) * 0.5f;
    }
}

int64_t loops_within_reach(const uint64_t *signs, const uint64_t *whole_signs, int64_t words, const uint64_t *question,
                           const int32_t *owners, const int32_t *rows, const float *bound, const int64_t *at,
                           const float *needed, int64_t count, int64_t *found) {
    int64_t reaching = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i + SOON < count) {
            ask_for(signs + at[i + SOON] * words, words * sizeof *signs);
            __builtin_prefetch(owners + at[i + SOON]);
        }
        float own = bound[differing(signs + at[i] * words, question, words)];
        if ((own + bound[0]) * 0.5f < needed[i]) continue; // even if its document were as near as can be
        int64_t row = rows[owners[at[i]]];
        float whole = row < 0 ? own : bound[differing(whole_signs + row * words, question, words)];
        if ((own + whole) * 0.5f >= needed[i]) found[reaching++] = i;
    }
    return reaching;
}

// Whether the version of these loops that is compiled for wider registers runs here.
bool loops_run_wide(void) { return has_avx2_and_fma(); }
