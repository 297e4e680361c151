/* CRC-32 with zlib's polynomial (0x04C11DB7, reflected), the checksum of every message.

   On x86-64 processors with carry-less multiplication, stretches of 16 bytes are folded into one
   another (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ"); the
   rest, and other processors, take eight bytes a step from tables. */

#include "crc_tables.h"

static uint32_t crc32_tables[8][256];

static uint32_t crc32_by_tables(uint32_t crc, const uint8_t *data, size_t size) {
    return crc_by_tables(crc32_tables, crc, data, size);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CRC32_CAN_FOLD __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")

__attribute__((target("pclmul,sse4.1"))) static inline __m128i crc32_fold(__m128i x, __m128i by) {
    return _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11));
}

/* size is a multiple of 16, and at least 16. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t
crc32_by_folding(uint32_t crc, const uint8_t *data, size_t size) {
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i by_8 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i reduction = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low_halves = _mm_setr_epi32(-1, 0, -1, 0);
    const __m128i *at = (const __m128i *)data;
    __m128i x = _mm_xor_si128(_mm_loadu_si128(at++), _mm_cvtsi32_si128((int)crc));
    size -= 16;
    if (size >= 48) {
        __m128i b = _mm_loadu_si128(at++), c = _mm_loadu_si128(at++), d = _mm_loadu_si128(at++);
        for (size -= 48; size >= 64; size -= 64, at += 4) {
            x = _mm_xor_si128(crc32_fold(x, by_64), _mm_loadu_si128(at));
            b = _mm_xor_si128(crc32_fold(b, by_64), _mm_loadu_si128(at + 1));
            c = _mm_xor_si128(crc32_fold(c, by_64), _mm_loadu_si128(at + 2));
            d = _mm_xor_si128(crc32_fold(d, by_64), _mm_loadu_si128(at + 3));
        }
        x = _mm_xor_si128(crc32_fold(x, by_16), b);
        x = _mm_xor_si128(crc32_fold(x, by_16), c);
        x = _mm_xor_si128(crc32_fold(x, by_16), d);
    }
    for (; size >= 16; size -= 16)
        x = _mm_xor_si128(crc32_fold(x, by_16), _mm_loadu_si128(at++));
    /* 128 bits to 64, to 32 */
    x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by_16, 0x10));
    x = _mm_xor_si128(_mm_srli_si128(x, 4),
                      _mm_clmulepi64_si128(_mm_and_si128(x, low_halves), by_8, 0x00));
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(x, low_halves), reduction, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_halves), reduction, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, quotient), 1);
}
#else
#define CRC32_CAN_FOLD 0
#define crc32_by_folding crc32_by_tables
#endif

static int crc32_folds = 0;

static void crc32_setup(void) {
    crc_prepare(crc32_tables, 0xEDB88320u);
    crc32_folds = CRC32_CAN_FOLD;
}

/* The checksum of what has the checksum before and of size more bytes. */
static inline uint32_t crc32_after(uint32_t before, const uint8_t *data, size_t size) {
    uint32_t crc = ~before;
    if (crc32_folds && size >= 16) {
        size_t whole = size & ~(size_t)15;
        crc = crc32_by_folding(crc, data, whole);
        data += whole;
        size -= whole;
    }
    return ~crc32_by_tables(crc, data, size);
}

static inline uint32_t crc32_of(const uint8_t *data, size_t size) {
    return crc32_after(0, data, size);
}
