/* file.h - what an open file is made of */
#ifndef GG_FILE_FILE_H
#define GG_FILE_FILE_H

#include "base/index.h"
#include "base/mapfile.h"
#include "file/layout.h"
#include "gguf/file.h"
#include "gguf/paths.h"

struct gguf_file {
    const struct gguf_allocator *allocator;
    struct gg_mapfile map;
    char *path; /* or NULL */
    uint32_t version;
    bool big_endian;
    uint32_t align;
    uint64_t header_end, data_off;
    uint64_t data_end; /* of the last tensor, from the start of the file */

    struct gguf_kv *kv;
    size_t n_kv, kv_room;
    struct gg_index kv_index;

    struct gguf_tensor_info *tensor;
    struct gg_place *places; /* by offset */
    size_t n_tensors, tensor_room;
    struct gg_index tensor_index;
};

/* Note what f is, its path, and the journal of an edit beside it (journal.h):
 * as "input". */
enum gguf_status gg_file_note(const struct gguf_file *f,
                              struct gguf_paths *paths,
                              struct gguf_error *err);

/* Is the file as it was when it was opened (mapfile.h)? NULL is fine.
 * GGUF_E_MISMATCH names it where it has a path. */
enum gguf_status gg_file_check(const struct gguf_file *f,
                               struct gguf_error *err);

#endif
