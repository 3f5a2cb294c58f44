/* SPDX-License-Identifier: MIT */
/* fix.h - GGUF files made by hand, good and bad, byte by byte
 *
 * tests/fixtures.txt describes them in parts "[good]", "[bad metadata]" and
 * "[bad tensors]". A fixture is a line "NAME STATUS", with the status of
 * opening it, and lines that begin with a blank and give its content:
 *
 *     "text"                   these characters; \x0a is the byte 0x0a
 *     u8:1 u16:1 u32:1 u64:1   a number
 *     f32:0.5
 *     str:"text"               length and characters
 *     head:3,2,1               version 3, 2 tensors, 1 key
 *     key:u32,"name"           a key and its type; the value follows
 *     tensor:4x2,0,64,"name"   dimensions, type, offset, name
 *     pad:32                   zeros up to a multiple of 32
 *     ...^3                    three times
 *     big-endian               from here on
 *     @NAME                    the content of another fixture
 *     mark                     the first wrong field begins here; the error
 *                              must report this offset
 *
 * fix_model.c has models that open, and the findings that a verification
 * reports for them. mkfix writes all of these files.
 */
#ifndef TESTS_FIX_H
#define TESTS_FIX_H

#include "gguf/file.h"

#include <stdbool.h>

struct fix {
    uint8_t *data;
    size_t size, room;
    bool big_endian;
    uint64_t mark; /* offset of the first wrong field; GGUF_NO_OFFSET: none */
};

void fix_init(struct fix *f);
void fix_fini(struct fix *f);

/* The next field is the first wrong one. */
void fix_mark(struct fix *f);

void fix_u8(struct fix *f, unsigned v);
void fix_u16(struct fix *f, unsigned v);
void fix_u32(struct fix *f, uint32_t v);
void fix_u64(struct fix *f, uint64_t v);
void fix_f32(struct fix *f, float v);
void fix_bytes(struct fix *f, const void *p, size_t n);
void fix_fill(struct fix *f, unsigned byte, size_t n);
/* Zeros up to a multiple of align. */
void fix_pad(struct fix *f, size_t align);
/* Length and bytes. */
void fix_str(struct fix *f, const char *s);

/* Magic, version, counts. */
void fix_head(struct fix *f, uint32_t version, uint64_t n_tensors,
              uint64_t n_kv);
/* Key and type; the value follows. */
void fix_key(struct fix *f, const char *key, uint32_t type);
/* Key, type, element type, count; the elements follow. */
void fix_array(struct fix *f, const char *key, uint32_t elem, uint64_t n);
void fix_kv_u32(struct fix *f, const char *key, uint32_t v);
void fix_kv_str(struct fix *f, const char *key, const char *v);
/* An entry of the tensor list; ne ends with 0. */
void fix_info(struct fix *f, const char *name, const uint64_t *ne,
              uint32_t type, uint64_t off);
#define FIX_NE(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

struct fixture {
    char *name; /* NULL: end of a list */
    char *words;
    enum gguf_status status;
};

/* Fixtures of a part. Exits with status 99 if the part is missing. */
const struct fixture *fix_list(const char *part);
/* Fixture of this name. Exits with status 99 if it is missing. */
const struct fixture *fix_find(const char *name);
void fix_make(const struct fixture *x, struct fix *f);

struct fix_model {
    const char *name;
    void (*make)(struct fix *f);
    const char *codes; /* codes of the findings, separated by blanks */
};

/* The last row's name is NULL. */
extern const struct fix_model fix_models[];

#endif
