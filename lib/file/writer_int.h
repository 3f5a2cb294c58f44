/* SPDX-License-Identifier: MIT */
/* writer_int.h - what a writer is made of */
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
    const struct gguf_allocator *allocator;
    uint32_t version;
    bool big_endian;
    enum gg_writer_state state;

    /* the plan */
    uint8_t *kv_bytes; /* metadata, encoded */
    size_t kv_size;
    uint64_t n_kv;
    uint32_t align;
    struct gguf_tensor_info *tensor; /* names are in arena */
    size_t n_tensors, room;
    struct gg_index index;
    struct gg_mem_arena arena;
    uint64_t infos_size; /* bytes of the encoded list */
    uint64_t data_size;  /* with padding */
    uint8_t *header;     /* encoded, or NULL */
    size_t header_size;

    /* the bytes */
    struct gg_outfile out;
    const struct gguf_file **inputs; /* a copy of the list */
    size_t n_inputs;
    size_t next;            /* tensor that gguf_writer_begin_tensor may take */
    bool streaming;         /* tensor next - 1 is being written in order */
    _Atomic uint64_t *done; /* bytes written, per tensor */
};

/* gg_outfile_sync_some, of the file so far. */
enum gguf_status gg_writer_sync_some(const struct gguf_writer *w, uint64_t *at,
                                     struct gguf_error *err);

/* All of gguf_writer_commit but the name, which is w->out's (outfile.h). */
enum gguf_status gg_writer_finish(struct gguf_writer *w,
                                  struct gguf_error *err);

#endif
