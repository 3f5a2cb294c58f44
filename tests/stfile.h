/* SPDX-License-Identifier: MIT */
/* stfile.h - a .safetensors file made in memory, tensor by tensor */
#ifndef TESTS_STFILE_H
#define TESTS_STFILE_H

#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

/* Largest number of bytes of data; define it before including for more. */
#ifndef STFILE_MOST
#define STFILE_MOST (1 << 18)
#endif

struct stfile {
    char header[1 << 14];
    uint8_t data[STFILE_MOST];
    size_t n_header, n_data;
    uint8_t bytes[STFILE_MOST + (1 << 14) + 8]; /* the whole file */
};

static inline void stfile_begin(struct stfile *f)
{
    f->n_header = (size_t)sprintf(f->header, "{");
    f->n_data = 0;
    memset(f->data, 0, sizeof f->data);
}

/* Add a tensor of size zero bytes. shape: list in JSON without brackets.
 * Returns its data. */
static inline uint8_t *stfile_add(struct stfile *f, const char *name,
                                  const char *type, const char *shape,
                                  size_t size)
{
    uint8_t *p = f->data + f->n_data;
    f->n_header += (size_t)sprintf(
        f->header + f->n_header,
        "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,"
        "%zu]}",
        f->n_header > 1 ? "," : "", name, type, shape, f->n_data,
        f->n_data + size);
    f->n_data += size;
    return p;
}

/* Complete f->bytes. Returns the size of the file. */
static inline size_t stfile_end(struct stfile *f)
{
    f->n_header += (size_t)sprintf(f->header + f->n_header, "}");
    gg_bytes_store64le(f->bytes, f->n_header);
    memcpy(f->bytes + 8, f->header, f->n_header);
    memcpy(f->bytes + 8 + f->n_header, f->data, f->n_data);
    return 8 + f->n_header + f->n_data;
}

#endif
