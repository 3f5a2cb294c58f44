/* SPDX-License-Identifier: MIT */
/* writer_int.h - members of struct gguf_writer */
#ifndef GG_FILE_WRITER_INT_H
#define GG_FILE_WRITER_INT_H

#include "base/index.h"
#include "base/mem.h"
#include "base/outfile_int.h"
#include "file/layout.h"
#include "gguf/writer.h"

#include <stdatomic.h>

enum gg_writer_state { GG_PLANNING, GG_WRITING, GG_DONE };

struct gguf_writer {
    const struct gguf_allocator *allocator; /* allocator of the writer */
    uint32_t version;                       /* version of GGUF */
    bool big_endian;                        /* the header is big-endian */
    enum gg_writer_state state;             /* phase */

    /* The plan. */
    uint8_t *kv_bytes;               /* encoded metadata */
    size_t kv_size;                  /* bytes at kv_bytes */
    uint64_t n_kv;                   /* number of pairs */
    uint32_t align;                  /* alignment of tensor data in bytes */
    struct gguf_tensor_info *tensor; /* tensors; names are in arena */
    size_t n_tensors, room;          /* number of tensors; room for tensors */
    struct gg_index index;           /* tensors by name */
    struct gg_mem_arena arena;       /* names */
    uint64_t infos_size;             /* bytes of the encoded list of tensors */
    uint64_t data_size;              /* bytes of data with padding */
    uint8_t *header;                 /* encoded header; NULL: not encoded */
    size_t header_size;              /* bytes at header */

    /* The file. */
    struct gg_outfile out;           /* the file */
    const struct gguf_file **inputs; /* copy of the list of inputs */
    size_t n_inputs;                 /* number of inputs */
    size_t next;                     /* first tensor that can be begun */
    bool streaming;                  /* tensor next - 1 is being written */
    _Atomic uint64_t *done;          /* bytes written of each tensor */
};

/* Sync a part of the file: gg_outfile_sync_some(). */
enum gguf_status gg_writer_sync_some(const struct gguf_writer *w, uint64_t *at,
                                     struct gguf_error *err);

/* Do all steps of gguf_writer_commit() before the name, which w->out can then
 * give (outfile_int.h). */
enum gguf_status gg_writer_finish(struct gguf_writer *w,
                                  struct gguf_error *err);

#endif
