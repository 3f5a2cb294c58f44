/* SPDX-License-Identifier: MIT */
/* record.h - the layout of a journal (resume.h says what it means) */
#ifndef GG_QUANT_RESUME_RECORD_H
#define GG_QUANT_RESUME_RECORD_H

#include "base/bytes.h"

#include <stdbool.h>
#include <string.h>
#include <xxhash.h>

#define GG_RESUME_MAGIC "GGUFRESU"

enum {
    GG_RESUME_FORMAT = 3,
    GG_RESUME_HEAD = 32,    /* bytes of the head, */
    GG_RESUME_RECORD = 104, /* and of a record */
    GG_RESUME_TENSOR = 1,
    GG_RESUME_NAME = 2,
    GG_RESUME_PART = 3
};

/* Is the record at b whole? */
static inline bool gg_resume_record_is(const uint8_t *b)
{
    return XXH3_64bits(b, GG_RESUME_RECORD - 8) ==
           gg_bytes_load64le(b + GG_RESUME_RECORD - 8);
}

#endif
