/* CRC-32C (Castagnoli's polynomial 0x1EDC6F41, reflected), the checksum of record batches.

   x86-64 processors with SSE 4.2 have an instruction for eight bytes; others take eight bytes a
   step from tables. */

#include <string.h>

#include "crc_tables.h"

static uint32_t crc32c_tables[8][256];

static uint32_t crc32c_by_tables(uint32_t crc, const uint8_t *data, size_t size) {
    return crc_by_tables(crc32c_tables, crc, data, size);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CRC32C_HAS_INSTRUCTION __builtin_cpu_supports("sse4.2")

__attribute__((target("sse4.2"))) static uint32_t
crc32c_by_instruction(uint32_t crc, const uint8_t *data, size_t size) {
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t eight;
        memcpy(&eight, data, 8);
        wide = _mm_crc32_u64(wide, eight);
    }
    crc = (uint32_t)wide;
    while (size--)
        crc = _mm_crc32_u8(crc, *data++);
    return crc;
}
#else
#define CRC32C_HAS_INSTRUCTION 0
#define crc32c_by_instruction crc32c_by_tables
#endif

static int crc32c_instructed = 0;

static void crc32c_setup(void) {
    crc_prepare(crc32c_tables, 0x82F63B78u);
    crc32c_instructed = CRC32C_HAS_INSTRUCTION;
}

/* The checksum of what has the checksum before and of size more bytes. */
static inline uint32_t crc32c_after(uint32_t before, const uint8_t *data, size_t size) {
    return ~(crc32c_instructed ? crc32c_by_instruction(~before, data, size)
                               : crc32c_by_tables(~before, data, size));
}

static inline uint32_t crc32c_of(const uint8_t *data, size_t size) {
    return crc32c_after(0, data, size);
}
