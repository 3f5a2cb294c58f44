/* SPDX-License-Identifier: MIT */
/* gguf_list.h - tensors of a GGUF file or a split set as a list
 *
 * An NVFP4 tensor NAME.weight may have a scale outside of its blocks: an F32
 * tensor NAME.scale with one number, or with one for each matrix (expert), by
 * which all elements are multiplied. Without it the scale is 1: llama.cpp's
 * converter omits scales of 1, and its models multiply by those that exist.
 * NAME.input_scale applies to activations and changes no weight.
 */
#ifndef GG_DATA_GGUF_LIST_H
#define GG_DATA_GGUF_LIST_H

#include "base/resident.h"
#include "data/data.h"
#include "data/source.h"

struct gg_data_gguf {
    struct gg_data list;
    struct gg_source from;             /* kept */
    const struct gg_codec_kern *codec; /* [GG_N_DTYPES]; kept */
    bool scaled;                       /* multiply numbers by scale tensors */
    struct gg_resident
        /* Loaded parts of each file with a reader (gg_data_hold); NULL: such
         * files are refused. */
        *held;
};

/* Make d a list of the tensors of from. Cannot fail, and allocates nothing. */
void gg_data_gguf_init(struct gg_data_gguf *d, const struct gg_source *from,
                       const struct gg_codec_kern *codec, bool scaled);

/* Is tensor i a scale that another tensor's numbers include? */
bool gg_data_gguf_is_scale(const struct gg_data_gguf *d, size_t i);

/* Allow files with readers, whose data are then held before they are read
 * (data.h). Scale tensors are held from gg_data_rows on. Does nothing if no
 * file has a reader. gg_data_gguf_fini must be called before the files are
 * closed, after a failure too. GGUF_E_NOMEM. */
enum gguf_status
gg_data_gguf_allow_readers(struct gg_data_gguf *d,
                           const struct gguf_allocator *allocator,
                           struct gguf_error *err);
/* Does nothing for a zeroed struct, and without readers. */
void gg_data_gguf_fini(struct gg_data_gguf *d,
                       const struct gguf_allocator *allocator);

/* bytes of a scale tensor's name */
enum { GG_SCALE_NAME = 256 };

/* Format the name of the tensor beside NAME.weight with a suffix: "NAME.scale".
 * Returns false if the type has no such tensor, or the name does not end in
 * ".weight". */
bool gg_data_scale_name(struct gguf_str weight, uint32_t dtype,
                        const char *suffix, char name[GG_SCALE_NAME]);

#endif
