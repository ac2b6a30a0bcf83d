// The inner loops of a search, each in one pass over its rows. `kernels.py` is their only caller; `numpy_kernels.py`
// says what each returns, and docs/decisions/012 why they are compiled.
//
// Rows are contiguous. `at` selects rows (NULL: all), in any order, so each one is prefetched some rows ahead of its use.

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
    CACHE_LINE = 64,   // bytes
    BITS_AHEAD = 24,   // rows of sign bits that are prefetched before their use
    VECTORS_AHEAD = 4, // rows of vectors, likewise
};

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

static inline int64_t row_at(const int64_t *at, int64_t i) { return at ? at[i] : i; }

static inline void prefetch(const void *row, int64_t bytes) {
    for (int64_t offset = 0; offset < bytes; offset += CACHE_LINE) __builtin_prefetch((const char *)row + offset);
}

// The order of the additions is fixed, so a row's product does not depend on the other rows of the call.
static inline float dot(const float *row, const float *question, int64_t dimensions) {
    Lanes sums = {0};
    int64_t i = 0;
    for (; i + LANES <= dimensions; i += LANES) sums += *(const Lanes *)(row + i) * *(const Lanes *)(question + i);
    float sum = 0;
    for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
    for (; i < dimensions; i++) sum += row[i] * question[i];
    return sum;
}

static inline int distance(const uint64_t *row, const uint64_t *question, int64_t words) {
    int bits = 0;
    if (words == 6) // 384 dimensions, those of the model that comes with kb: unrolled
        for (int i = 0; i < 6; i++) bits += __builtin_popcountll(row[i] ^ question[i]);
    else
        for (int64_t i = 0; i < words; i++) bits += __builtin_popcountll(row[i] ^ question[i]);
    return bits;
}

int64_t kernels_located(const int32_t *chunk_ids, const uint16_t *counts, int64_t count, const int32_t *row_of_chunk,
                        int64_t known, const bool *alive, int64_t row_count, int32_t *rows, uint16_t *kept_counts) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t row = chunk_ids[i] >= 0 && chunk_ids[i] < known ? row_of_chunk[chunk_ids[i]] : -1;
        if (row < 0 || row >= row_count || !alive[row]) continue;
        rows[found] = (int32_t)row;
        kept_counts[found++] = counts[i];
    }
    return found;
}

int64_t kernels_totals(const int32_t *rows, const uint16_t *counts, int64_t count, const int32_t *doc_ords,
                       int32_t *found_ords, uint32_t *totals) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t doc_ord = doc_ords[rows[i]];
        if (found == 0 || found_ords[found - 1] != doc_ord) {
            found_ords[found] = doc_ord;
            totals[found++] = 0;
        }
        totals[found - 1] += counts[i];
    }
    return found;
}

void kernels_saturated(const uint32_t *occurrences, const int32_t *lengths, const int32_t *at, int64_t count, float slope,
                       float offset, float scale, float *impacts) {
    for (int64_t i = 0; i < count; i++) {
        float often = (float)occurrences[i];
        impacts[i] = often / ((float)lengths[at[i]] * slope + offset + often) * scale;
    }
}

void kernels_add(const int32_t *rows, const float *impacts, int64_t count, float *sums) {
    for (int64_t i = 0; i < count; i++) sums[rows[i]] += impacts[i];
}

int64_t kernels_hits(const float *passages, const float *documents, const int32_t *doc_ords, const int64_t *at,
                     int64_t count, int64_t *rows, float *scores) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) { // without a branch, which could not be predicted
        rows[found] = row_at(at, i);
        found += passages[row_at(at, i)] > 0;
    }
    for (int64_t i = 0; i < found; i++) scores[i] = sqrtf(passages[rows[i]] * documents[doc_ords[rows[i]]]);
    return found;
}

void kernels_distances(const uint64_t *sign_bits, int64_t words, const uint64_t *question, const int64_t *at,
                       int64_t count, uint16_t *distances) {
    for (int64_t i = 0; i < count; i++) {
        if (at && i + BITS_AHEAD < count) prefetch(sign_bits + at[i + BITS_AHEAD] * words, words * sizeof *sign_bits);
        distances[i] = (uint16_t)distance(sign_bits + row_at(at, i) * words, question, words);
    }
}

void kernels_cosines(const float *vectors, int64_t dimensions, const float *question, const int64_t *at, int64_t count,
                     float *cosines) {
    for (int64_t i = 0; i < count; i++) {
        if (at && i + VECTORS_AHEAD < count)
            prefetch(vectors + at[i + VECTORS_AHEAD] * dimensions, dimensions * sizeof *vectors);
        cosines[i] = dot(vectors + row_at(at, i) * dimensions, question, dimensions);
    }
}

// Vectors of signed bytes, each with the scale that makes it a unit vector; below 0: it has none.
void kernels_static_cosines(const int8_t *vectors, const float *scales, int64_t dimensions, const int16_t *question,
                            const int64_t *at, int64_t count, float *cosines) {
    for (int64_t i = 0; i < count; i++) {
        if (at && i + BITS_AHEAD < count) prefetch(vectors + at[i + BITS_AHEAD] * dimensions, dimensions);
        const int8_t *row = vectors + row_at(at, i) * dimensions;
        int32_t sum = 0; // at most 128 * 127 * 32767
        for (int64_t j = 0; j < dimensions; j++) sum += row[j] * question[j];
        float scale = scales[row_at(at, i)];
        cosines[i] = scale > 0 ? (float)sum * scale : 0;
    }
}

void kernels_cosines_with_documents(const float *vectors, const float *doc_vectors, int64_t dimensions,
                                    const float *question, const int32_t *doc_ords, const int32_t *doc_vector_rows,
                                    const int64_t *at, int64_t count, float *cosines) {
    for (int64_t i = 0; i < count; i++) {
        if (i + VECTORS_AHEAD < count) {
            int64_t next = at[i + VECTORS_AHEAD], vector_row = doc_vector_rows[doc_ords[next]];
            prefetch(vectors + next * dimensions, dimensions * sizeof *vectors);
            if (vector_row >= 0) prefetch(doc_vectors + vector_row * dimensions, dimensions * sizeof *doc_vectors);
        }
        float own = dot(vectors + at[i] * dimensions, question, dimensions);
        int64_t vector_row = doc_vector_rows[doc_ords[at[i]]];
        float whole = vector_row < 0 ? own : dot(doc_vectors + vector_row * dimensions, question, dimensions);
        cosines[i] = (own + whole) * 0.5f;
    }
}

int64_t kernels_within_reach(const uint64_t *sign_bits, const uint64_t *doc_sign_bits, int64_t words,
                             const uint64_t *question, const int32_t *doc_ords, const int32_t *doc_vector_rows,
                             const float *bound, const int64_t *at, const float *needed, int64_t count,
                             int64_t *positions) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        if (i + BITS_AHEAD < count) {
            prefetch(sign_bits + at[i + BITS_AHEAD] * words, words * sizeof *sign_bits);
            __builtin_prefetch(doc_ords + at[i + BITS_AHEAD]);
        }
        float own = bound[distance(sign_bits + at[i] * words, question, words)];
        if ((own + bound[0]) * 0.5f < needed[i]) continue; // out of reach even if the document were as near as possible
        int64_t vector_row = doc_vector_rows[doc_ords[at[i]]];
        float whole = vector_row < 0 ? own : bound[distance(doc_sign_bits + vector_row * words, question, words)];
        if ((own + whole) * 0.5f >= needed[i]) positions[found++] = i;
    }
    return found;
}

// Whether this CPU can run `libkernels_wide.so`, the same file compiled for AVX2.
bool kernels_avx2_supported(void) { return has_avx2_and_fma(); }
