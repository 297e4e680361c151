/* Integers in the byte order of the protocol and of log files, at any address. */

#ifndef KAFKA08_BIG_ENDIAN_H
#define KAFKA08_BIG_ENDIAN_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define swapped_64(x) __builtin_bswap64(x)
#define swapped_32(x) __builtin_bswap32(x)
#else
#define swapped_64(x) (x)
#define swapped_32(x) (x)
#endif

static inline int64_t int64_at(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return (int64_t)swapped_64(value);
}

static inline int32_t int32_at(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return (int32_t)swapped_32(value);
}

/* Both return where the number ends. */
static inline uint8_t *put_64(uint8_t *at, int64_t number) {
    uint64_t value = swapped_64((uint64_t)number);
    memcpy(at, &value, 8);
    return at + 8;
}

static inline uint8_t *put_32(uint8_t *at, int64_t number) {
    uint32_t value = swapped_32((uint32_t)number);
    memcpy(at, &value, 4);
    return at + 4;
}

#endif
