// Products on any processor with AVX2: in float32, with weights of 16 bits and a scale for each output.

enum {
    PANEL = 16,   // outputs whose weights are stored together
    TILE = 6,     // tokens at a time: sums of six times sixteen fill twelve of the sixteen registers
    AHEAD = 2048, // weights that are prefetched before their use: 4 KB, some 300 ns
};

typedef int16_t Weight; // [outputs / PANEL][inputs][PANEL]
typedef float Input;

static bool runs_here(void) { return has_avx2_and_fma(); }

#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)

static inline void put(Input *to, __m256 values) { _mm256_storeu_ps(to, values); }

// Eight weights as floats, not scaled yet.
static inline __m256 widened(const Weight *from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)from)));
}

// Sums of `rows` tokens for one panel. Always inlined with a constant, so that the sums stay in registers.
static inline __attribute__((always_inline)) void multiply(const int rows, const Weight *weights, const Input *x, int inputs,
                                                           float sums[TILE][PANEL]) {
    __m256 own[TILE][2];
    for (int row = 0; row < rows; row++) own[row][0] = own[row][1] = _mm256_setzero_ps();
    for (int i = 0; i < inputs; i += 2, weights += 2 * PANEL) {
        __builtin_prefetch(weights + AHEAD); // both inputs: 64 bytes
#pragma unroll
        for (int k = 0; k < 2; k++) {
            __m256 low = widened(weights + k * PANEL), high = widened(weights + k * PANEL + 8);
#pragma unroll
            for (int row = 0; row < rows; row++) {
                __m256 value = _mm256_set1_ps(x[row * inputs + i + k]);
                own[row][0] = _mm256_fmadd_ps(value, low, own[row][0]);
                own[row][1] = _mm256_fmadd_ps(value, high, own[row][1]);
            }
        }
    }
    for (int row = 0; row < rows; row++) _mm256_storeu_ps(sums[row], own[row][0]), _mm256_storeu_ps(sums[row] + 8, own[row][1]);
}

// On its own, so that the sums have all registers.
static __attribute__((noinline)) void tile(int rows, const Weight *weights, const Input *x, int inputs, float sums[TILE][PANEL]) {
    switch (rows) {
    case 1: return multiply(1, weights, x, inputs, sums);
    case 2: return multiply(2, weights, x, inputs, sums);
    case 3: return multiply(3, weights, x, inputs, sums);
    case 4: return multiply(4, weights, x, inputs, sums);
    case 5: return multiply(5, weights, x, inputs, sums);
    default: return multiply(TILE, weights, x, inputs, sums);
    }
}
