/* CRC-32C (Castagnoli's polynomial 0x1EDC6F41, reflected), the checksum of record batches.

   x86-64 processors with SSE 4.2 have an instruction for eight bytes; others take eight bytes a
   step from tables. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t crc32c_tables[8][256];

static void crc32c_prepare(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82F63B78u & -(crc & 1));
        crc32c_tables[0][i] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t before = crc32c_tables[table - 1][i];
            crc32c_tables[table][i] = before >> 8 ^ crc32c_tables[0][before & 0xFF];
        }
}

static uint32_t crc32c_by_tables(uint32_t crc, const uint8_t *data, size_t size) {
    const uint32_t(*t)[256] = crc32c_tables;
    while (size >= 8) {
        crc ^= data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
        crc = t[7][crc & 0xFF] ^ t[6][crc >> 8 & 0xFF] ^ t[5][crc >> 16 & 0xFF] ^ t[4][crc >> 24] ^
              t[3][data[4]] ^ t[2][data[5]] ^ t[1][data[6]] ^ t[0][data[7]];
        data += 8;
        size -= 8;
    }
    while (size--)
        crc = crc >> 8 ^ t[0][(crc ^ *data++) & 0xFF];
    return crc;
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
    crc32c_prepare();
    crc32c_instructed = CRC32C_HAS_INSTRUCTION;
}

static inline uint32_t crc32c_of(const uint8_t *data, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    return ~(crc32c_instructed ? crc32c_by_instruction(crc, data, size)
                               : crc32c_by_tables(crc, data, size));
}
