// Which instructions can be used: the processor has them, and the system saves their registers for every thread.

#pragma once

#include <cpuid.h>
#include <stdbool.h>

static inline bool keeps_registers(unsigned wanted) {
    unsigned a, b, c, d, kept, unused;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return false;
    __asm__("xgetbv" : "=a"(kept), "=d"(unused) : "c"(0));
    return (kept & wanted) == wanted;
}

static inline bool has_avx2_and_fma(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2) && keeps_registers(0x6);
}

static inline bool has_avx512_bf16(void) {
    const unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    unsigned a, b, c, d;
    if (!has_avx2_and_fma() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & wide) != wide) return false;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit_AVX512BF16) && keeps_registers(0xE6);
}
