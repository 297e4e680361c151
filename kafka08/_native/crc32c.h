/* CRC-32C (Castagnoli's polynomial 0x1EDC6F41, reflected), the checksum of record batches.

   x86-64 processors with SSE 4.2 have an instruction for eight bytes. It takes three cycles, but the
   next one may begin after one: three lanes of the data are summed side by side. Other processors
   take eight bytes a step from tables. */

#include <string.h>

#include "crc_tables.h"

static uint32_t crc32c_tables[8][256];

static uint32_t crc32c_by_tables(uint32_t crc, const uint8_t *data, size_t size) {
    return crc_by_tables(crc32c_tables, crc, data, size);
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define CRC32C_HAS_INSTRUCTION __builtin_cpu_supports("sse4.2")

#define CRC32C_LANE 512

/* What a lane of zeros makes of each byte of the register. */
static uint32_t crc32c_past[4][256];

static void crc32c_prepare_lanes(void) {
    static const uint8_t zeros[CRC32C_LANE];
    for (int byte = 0; byte < 4; byte++)
        for (uint32_t i = 1; i < 256; i++) {
            uint32_t lowest = i & -i;
            crc32c_past[byte][i] =
                i == lowest ? crc32c_by_tables(i << 8 * byte, zeros, CRC32C_LANE)
                            : crc32c_past[byte][lowest] ^ crc32c_past[byte][i ^ lowest];
        }
}

static inline uint32_t crc32c_past_lane(uint32_t crc) {
    return crc32c_past[0][crc & 0xFF] ^ crc32c_past[1][crc >> 8 & 0xFF] ^
           crc32c_past[2][crc >> 16 & 0xFF] ^ crc32c_past[3][crc >> 24];
}

__attribute__((target("sse4.2"))) static inline uint64_t
crc32c_eight(uint64_t crc, const uint8_t *data) {
    uint64_t eight;
    memcpy(&eight, data, 8);
    return _mm_crc32_u64(crc, eight);
}

__attribute__((target("sse4.2"))) static uint32_t
crc32c_by_instruction(uint32_t crc, const uint8_t *data, size_t size) {
    for (; size >= 3 * CRC32C_LANE; size -= 3 * CRC32C_LANE) {
        uint64_t a = crc, b = 0, c = 0;
        for (const uint8_t *end = data + CRC32C_LANE; data < end; data += 8) {
            a = crc32c_eight(a, data);
            b = crc32c_eight(b, data + CRC32C_LANE);
            c = crc32c_eight(c, data + 2 * CRC32C_LANE);
        }
        data += 2 * CRC32C_LANE;
        crc = crc32c_past_lane(crc32c_past_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
    }
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, data += 8)
        wide = crc32c_eight(wide, data);
    crc = (uint32_t)wide;
    while (size--)
        crc = _mm_crc32_u8(crc, *data++);
    return crc;
}
#else
#define CRC32C_HAS_INSTRUCTION 0
#define crc32c_prepare_lanes()
#define crc32c_by_instruction crc32c_by_tables
#endif

static int crc32c_instructed = 0;

static void crc32c_setup(void) {
    crc_prepare(crc32c_tables, 0x82F63B78u);
    crc32c_prepare_lanes();
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
