/* SPDX-License-Identifier: MIT */
/* back.h - a GGUF file that becomes a Hugging Face folder again
 *
 * The file is read (back.c). The folder is described: config.json by the
 * inverse of each row of keys (back_config.c), names and shapes of tensors by
 * the inverse of each row of names (back_names.c, back_shape.c), their numbers
 * as made of the file's tensors, by the parts that rows take, turned round
 * (back_view.c; back_ternary.c, where numbers are rounded by their mean), the
 * tokenizer (back_vocab.c) and the card (back_card.c). What is described is
 * written (back_files.c).
 *
 * A check follows: the folder must become the file's tensors again, with their
 * shapes, as any folder does; a note tells each key that it does not give back.
 */
#ifndef GG_CONVERT_BACK_BACK_H
#define GG_CONVERT_BACK_BACK_H

#include "convert/convert_int.h"
#include "data/gguf_list.h"
#include "data/element_reader.h"
#include "data/safetensors_write.h"
#include "gguf/split.h"

struct gg_back {
    struct gguf_folder_params p;
    struct gg_mem_arena arena;
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gguf_file *in;
    const struct gguf_file *meta; /* its first file */
    struct gg_source source;
    struct gg_data_gguf numbers;
    struct gguf_convert *c;        /* the folder, as it would be converted */
    struct gg_data_elements loose; /* numbers, from any element on */
    char *config; /* config.json, n_config bytes; from malloc */
    size_t n_config;
    struct gg_back_use *use; /* by tensor of the folder (back_shape.h) */
    size_t *first_use;       /* first use of each of n_used, and the end */
    size_t n_used;           /* tensors of the folder with uses, the first */
    size_t n_to; /* tensors of c->folder.weights that are written; those
                                   * after them are computed of config.json */
    struct gg_safetensors_writer_tensor
        *to; /* of the folder: by c->folder.weights's places */
    struct gg_safetensors_writer out;
};

/* The folder's type for numbers of a type of the file; indexes stay such. */
static inline uint32_t gg_back_dtype(const struct gg_back *b, uint32_t dtype)
{
    if (dtype == GGUF_DTYPE_I32)
        return dtype;
    if (b->p.dtype)
        return b->p.dtype->id;
    return dtype == GGUF_DTYPE_F32 || dtype == GGUF_DTYPE_BF16
               ? dtype
               : GGUF_DTYPE_F16;
}

/* back_config.c: b->config for a class of that row. */
enum gguf_status gg_back_make_config(struct gg_back *b,
                                     const struct gg_convert_arch *arch,
                                     struct gguf_error *err);

/* back.c: config.json of the folder that the file at path would become, in the
 * arena; opened notes the files that were read. The statuses of
 * gguf_folder_write. */
enum gguf_status gg_back_read_config(const char *path,
                                     const struct gguf_limits *limits,
                                     struct gg_mem_arena *arena,
                                     struct gguf_paths *opened, char **out,
                                     size_t *size, struct gguf_error *err);

/* back_names.c: add the folder's tensors to its weights, and count them; those
 * that are numbers of keys have data. GGUF_E_TENSOR: one of the file that no
 * row makes, or of no shape that a row takes; GGUF_E_TYPE: a key that is no
 * number. */
enum gguf_status gg_back_add_tensors(struct gg_back *b,
                                     struct gguf_error *err);

/* back_view.c: tensor i of the folder as one made of the file's. It is the
 * caller's to free with gg_back_made_fini, also after a failure. */
struct gg_back_made {
    struct gg_data_composed list; /* of one tensor */
    struct gg_composed_tensor tensor;
    struct gg_composed_part *part;
    size_t n_parts, room;
};
enum gguf_status gg_back_make_tensor(const struct gg_back *b, uint32_t i,
                                     struct gg_back_made *out,
                                     struct gguf_error *err);
void gg_back_made_fini(const struct gg_back *b, struct gg_back_made *m);
/* Are they of the same elements in the same order? */
bool gg_back_is_same_part(const struct gg_composed_part *a,
                          const struct gg_composed_part *b);

/* back_ternary.c: the file's tensor has -v, 0 and v. Magnitudes of which this
 * is the mean: high up to element cut, low from there on, of numbers that are
 * not 0; all 0 if all are. dtype: what the folder has them in. GGUF_E_TENSOR:
 * it has other numbers; GGUF_E_NONFINITE: that type does not hold them. */
struct gg_back_ternary {
    float low, high;
    uint64_t cut;
};
enum gguf_status gg_back_find_ternary(const struct gg_back *b, size_t tensor,
                                      uint32_t dtype,
                                      struct gg_back_ternary *out,
                                      struct gguf_error *err);

/* Texts of the folder, beside config.json. back_vocab.c: the tokenizer;
 * back_card.c: the model card and generation_config.json, where the file has
 * what they say. GGUF_E_NOMEM. */
struct gg_back_text {
    const char *name; /* NULL: there is none */
    char *text;       /* from malloc */
    size_t size;
};
enum { GG_BACK_CARD = 2, GG_BACK_TEXTS = 4 };
enum gguf_status gg_back_make_vocab(struct gg_back *b,
                                    struct gg_back_text text[GG_BACK_CARD],
                                    struct gguf_error *err);
enum gguf_status gg_back_make_card(struct gg_back *b,
                                   struct gg_back_text text[2],
                                   struct gguf_error *err);

/* back_files.c: write the folder dir: these texts (GG_BACK_TEXTS), config.json
 * and the numbers. GGUF_E_MISMATCH (it has files of another model),
 * GGUF_E_CANCELLED, and what reading and writing return. */
enum gguf_status gg_back_write_folder(struct gg_back *b, const char *dir,
                                      const struct gg_back_text *text,
                                      struct gguf_error *err);

/* back_paths.c: note the files of the input in p; check that no file of the
 * folder dir is one of those, or of b->p.paths. GGUF_E_INVALID, GGUF_E_LIMIT,
 * GGUF_E_NOMEM. */
enum gguf_status gg_back_note_input(const struct gg_back *b,
                                    struct gguf_paths *p,
                                    struct gguf_error *err);
enum gguf_status gg_back_check_paths(const struct gg_back *b, const char *dir,
                                     const struct gg_back_text *text,
                                     struct gguf_error *err);

#endif
