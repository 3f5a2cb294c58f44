/* SPDX-License-Identifier: MIT */
/* fix.c - the pen that fixtures are written with */
#include "config.h"
#include "tests/fix.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

void fix_init(struct fix *f)
{
    *f = (struct fix){ .mark = GGUF_NO_OFFSET };
}

void fix_fini(struct fix *f)
{
    free(f->data);
    fix_init(f);
}

void fix_mark(struct fix *f)
{
    f->mark = f->size;
}

static uint8_t *room(struct fix *f, size_t n)
{
    if (!f->data || f->room - f->size < n) {
        f->room = 2 * (f->size + n) + 256;
        f->data = realloc(f->data, f->room);
        if (!f->data)
            exit(99);
    }
    uint8_t *p = f->data + f->size;
    f->size += n;
    return p;
}

void fix_bytes(struct fix *f, const void *p, size_t n)
{
    if (n)
        memcpy(room(f, n), p, n);
}

void fix_fill(struct fix *f, unsigned byte, size_t n)
{
    memset(room(f, n), (int)byte, n);
}

void fix_pad(struct fix *f, size_t align)
{
    fix_fill(f, 0, (align - f->size % align) % align);
}

static void number(struct fix *f, uint64_t v, size_t size)
{
    uint8_t *p = room(f, size);
    for (size_t i = 0; i < size; i++)
        p[f->big_endian ? size - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

void fix_u8(struct fix *f, unsigned v)
{
    number(f, v, 1);
}

void fix_u16(struct fix *f, unsigned v)
{
    number(f, v, 2);
}

void fix_u32(struct fix *f, uint32_t v)
{
    number(f, v, 4);
}

void fix_u64(struct fix *f, uint64_t v)
{
    number(f, v, 8);
}

void fix_f32(struct fix *f, float v)
{
    number(f, gg_bytes_f32_bits(v), 4);
}

void fix_str(struct fix *f, const char *s)
{
    fix_u64(f, strlen(s));
    fix_bytes(f, s, strlen(s));
}

void fix_head(struct fix *f, uint32_t version, uint64_t n_tensors,
              uint64_t n_kv)
{
    fix_bytes(f, "GGUF", 4);
    fix_u32(f, version);
    fix_u64(f, n_tensors);
    fix_u64(f, n_kv);
}

void fix_key(struct fix *f, const char *key, uint32_t type)
{
    fix_str(f, key);
    fix_u32(f, type);
}

void fix_array(struct fix *f, const char *key, uint32_t elem, uint64_t n)
{
    fix_key(f, key, GGUF_VAL_ARR);
    fix_u32(f, elem);
    fix_u64(f, n);
}

void fix_kv_u32(struct fix *f, const char *key, uint32_t v)
{
    fix_key(f, key, GGUF_VAL_U32);
    fix_u32(f, v);
}

void fix_kv_str(struct fix *f, const char *key, const char *v)
{
    fix_key(f, key, GGUF_VAL_STR);
    fix_str(f, v);
}

void fix_info(struct fix *f, const char *name, const uint64_t *ne,
              uint32_t type, uint64_t off)
{
    uint32_t n = 0;
    while (ne[n])
        n++;
    fix_str(f, name);
    fix_u32(f, n);
    for (uint32_t d = 0; d < n; d++)
        fix_u64(f, ne[d]);
    fix_u32(f, type);
    fix_u64(f, off);
}
