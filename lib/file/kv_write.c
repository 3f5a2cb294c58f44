/* SPDX-License-Identifier: MIT */
/* kv_write.c - encode a metadata entry in either byte order */
#include "config.h"
#include "file/value.h"
#include "base/ckd.h"
#include "base/compiler.h"

bool gg_kv_encoded_size(const struct gguf_kv *kv, uint64_t *size)
{
    uint64_t head = 8 + 4 +
                    (kv->type == GGUF_VAL_STR   ? 8u
                     : kv->type == GGUF_VAL_ARR ? 12u
                                                : 0u);
    return gg_ckd_add(size, head, kv->key.size) ||
           gg_ckd_add(size, *size, kv->size) || gg_ckd_exceeds_cap(*size);
}

static uint8_t *put32(uint8_t *out, uint32_t v, bool big_endian)
{
    gg_bytes_store32le(out, big_endian ? gg_bytes_swap32(v) : v);
    return out + 4;
}

static uint8_t *put64(uint8_t *out, uint64_t v, bool big_endian)
{
    gg_bytes_store64le(out, big_endian ? gg_bytes_swap64(v) : v);
    return out + 8;
}

static uint8_t *put_bytes(uint8_t *out, const void *data, size_t size)
{
    if (size)
        memcpy(out, data, size);
    return out + size;
}

void gg_kv_encode(const struct gguf_kv *kv, bool big_endian, uint8_t *out)
{
    out = put64(out, kv->key.size, big_endian);
    out = put_bytes(out, kv->key.data, kv->key.size);
    out = put32(out, kv->type, big_endian);
    if (kv->type == GGUF_VAL_STR) {
        out = put64(out, kv->size, big_endian);
    } else if (kv->type == GGUF_VAL_ARR) {
        out = put32(out, kv->elem_type, big_endian);
        out = put64(out, kv->n, big_endian);
    }
    put_bytes(out, kv->data, kv->size);
    if (big_endian != kv->big_endian)
        gg_value_payload_swap(out, kv->size, kv->type, kv->elem_type, kv->n,
                              kv->big_endian);
}

/* Reverse n numbers of size bytes each. */
static void swap_numbers(uint8_t *p, size_t size, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++, p += size)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            uint8_t t = p[a];
            p[a] = p[b];
            p[b] = t;
        }
}

/* Load the number at p and reverse its bytes. */
static uint64_t take_number(uint8_t *p, size_t size, bool big_endian)
{
    uint64_t v = gg_value_load_bits(p, size, big_endian);
    swap_numbers(p, size, 1);
    return v;
}

/* Swap n elements in at most size bytes. Returns the bytes that they have.
 * Lengths were checked when the file was opened, but the bytes are a copy of a
 * file that may have changed since. */
static size_t swap_flat(uint8_t *p, size_t size, uint32_t elem, uint64_t n,
                        bool big_endian)
{
    size_t one = gguf_val_type_size(elem), pos = 0;
    if (one) {
        n = GG_MIN(n, size / one);
        swap_numbers(p, one, n);
        return (size_t)n * one;
    }
    for (uint64_t i = 0; i < n && size - pos >= 8; i++) {
        uint64_t len = take_number(p + pos, 8, big_endian);
        pos += 8;
        pos += (size_t)GG_MIN(len, size - pos);
    }
    return pos;
}

void gg_value_payload_swap(uint8_t *data, size_t size, uint32_t type,
                           uint32_t elem_type, uint64_t n, bool big_endian)
{
    if (type == GGUF_VAL_STR)
        return;
    if (elem_type != GGUF_VAL_ARR) {
        swap_flat(data, size, elem_type, n, big_endian);
        return;
    }
    /* The heads of nested arrays follow the head of the array around them, so
     * no stack is needed. */
    for (size_t pos = 0; size - pos >= 12;) {
        uint32_t elem = (uint32_t)take_number(data + pos, 4, big_endian);
        uint64_t items = take_number(data + pos + 4, 8, big_endian);
        pos += 12;
        if (elem != GGUF_VAL_ARR)
            pos += swap_flat(data + pos, size - pos, elem, items, big_endian);
    }
}
