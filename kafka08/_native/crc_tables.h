/* Reflected CRC-32 of any polynomial, eight bytes a step from tables: what crc32.h and crc32c.h do
   where a processor has no instruction for it. */

#ifndef KAFKA08_CRC_TABLES_H
#define KAFKA08_CRC_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* polynomial is reflected as well. */
static void crc_prepare(uint32_t (*t)[256], uint32_t polynomial) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (polynomial & -(crc & 1));
        t[0][i] = crc;
    }
    for (int table = 1; table < 8; table++)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t before = t[table - 1][i];
            t[table][i] = before >> 8 ^ t[0][before & 0xFF];
        }
}

/* The register, not inverted, after size more bytes. */
static inline uint32_t crc_by_tables(uint32_t (*t)[256], uint32_t crc, const uint8_t *data,
                                     size_t size) {
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

#endif
