/* SPDX-License-Identifier: MIT */
/* gguf_list.h - the tensors of a GGUF file, or of a split set, as a list
 *
 * An NVFP4 tensor NAME.weight may have a scale outside of its blocks: an F32
 * tensor NAME.scale of one number or of one for each of its matrices (experts),
 * by which all elements are multiplied. Without it the scale is 1: llama.cpp's
 * converter leaves out scales of 1, and its models multiply by those that
 * exist. NAME.input_scale is about activations and changes no weight.
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
    bool scaled; /* numbers are multiplied by scales outside of the blocks */
    struct gg_resident
        *held; /* what is in memory of each file that has a reader
                           * (gg_data_hold); NULL: such files are refused */
};

/* Make d a list of the tensors of from. Cannot fail; there is nothing to
 * free. */
void gg_data_gguf_init(struct gg_data_gguf *d, const struct gg_source *from,
                       const struct gg_codec_kern *codec, bool scaled);

/* Is tensor i the scale of another's blocks, which has it in its numbers? */
bool gg_data_gguf_is_scale(const struct gg_data_gguf *d, size_t i);

/* Let files be read that have a reader, by those who hold what they read
 * (data.h); scales outside of blocks are held from gg_data_rows on. Fine if
 * none has one. After a failure, too, fini is called, before the files are
 * closed. GGUF_E_NOMEM. */
enum gguf_status
gg_data_gguf_allow_readers(struct gg_data_gguf *d,
                           const struct gguf_allocator *allocator,
                           struct gguf_error *err);
/* Fine on a zeroed struct, and where nothing can be held. */
void gg_data_gguf_fini(struct gg_data_gguf *d,
                       const struct gguf_allocator *allocator);

/* Room for the name of a scale tensor. */
enum { GG_SCALE_NAME = 256 };

/* Put the name of NAME.weight's tensor with that suffix, "NAME.scale", into
 * name. False: the type has none, or the name does not end so. */
bool gg_data_scale_name(struct gguf_str weight, uint32_t dtype,
                        const char *suffix, char name[GG_SCALE_NAME]);

#endif
