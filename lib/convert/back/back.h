/* SPDX-License-Identifier: MIT */
/* back.h - a GGUF file that becomes a Hugging Face folder again
 *
 * The way back inverts each step of a conversion:
 * 1. back.c reads the file and finds the row of its class.
 * 2. back_config.c makes config.json by the inverse of each row of keys.
 *    back_projector.c makes it and preprocessor_config.json for a projector.
 * 3. back_names.c and back_shape.c compute names and shapes of the folder's
 *    tensors by the inverse of each row of names.
 * 4. back_view.c describes their numbers as parts of the file's tensors
 *    (back_ternary.c for numbers that were rounded by their mean).
 * 5. back_vocab.c makes the tokenizer, back_card.c the model card.
 * 6. A check converts the described folder again. It must become the file's
 *    tensors, with their shapes. A note names each key that is lost.
 * 7. back_files.c writes the folder.
 */
#ifndef GG_CONVERT_BACK_BACK_H
#define GG_CONVERT_BACK_BACK_H

#include "convert/convert_int.h"
#include "data/gguf_list.h"
#include "data/element_reader.h"
#include "data/safetensors_write.h"
#include "gguf/split.h"

struct gg_projector;

struct gg_back {
    struct gguf_folder_params p;
    struct gg_mem_arena arena;
    struct gg_codec_kern codec[GG_N_DTYPES];
    struct gguf_file *in;
    const struct gguf_file *meta; /* first file of the set */
    struct gg_source source;
    struct gg_data_gguf numbers;
    struct gguf_convert *c; /* the folder, as it would be converted again */
    struct gg_data_elements loose; /* reads numbers from any element on */
    char *config; /* config.json, n_config bytes, from malloc */
    size_t n_config;
    /* preprocessor_config.json of a projector, from malloc; NULL: none */
    char *image;
    /* uses, sorted by tensor of the folder (back_shape.h) */
    struct gg_back_use *use;
    size_t *first_use; /* [n_used + 1]: first use of each tensor */
    size_t n_used;     /* tensors of the folder with uses; they come first */
    /* Tensors of c->folder.weights that are written, at its start. The others
     * are computed from config.json. */
    size_t n_to;
    struct gg_safetensors_writer_tensor
        *to; /* tensors of the output, ordered as c->folder.weights */
    struct gg_safetensors_writer out;
};

/* Type in the folder for numbers of a type of the file. Integers keep their
 * type. */
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

/* back_config.c: make b->config for a class of the row arch. */
enum gguf_status gg_back_make_config(struct gg_back *b,
                                     const struct gg_convert_arch *arch,
                                     struct gguf_error *err);

/* back_projector.c: make b->config and b->image for a class of the row p. */
enum gguf_status gg_back_make_projector_config(struct gg_back *b,
                                               const struct gg_projector *p,
                                               struct gguf_error *err);
/* back_projector.c: is the projector of the file of the types that the row
 * makes? */
bool gg_back_fits_projector(const struct gg_back *b,
                            const struct gg_projector *p);
/* back_projector.c: read the described folder, whose config.json is open, as a
 * projector of the row p, and describe the file that it becomes. */
enum gguf_status gg_back_describe_projector(struct gg_back *b,
                                            const struct gg_projector *p,
                                            struct gguf_error *err);
/* back_projector.c: put the prefixes of a projector's row before the name that
 * a tensor has in rows. to: its name in the file. false: the result is too
 * long, or rows would not find it. */
bool gg_back_prefix_part(const struct gguf_convert *c, struct gguf_str to,
                         char name[160]);

/* back.c: make config.json of the folder that the file at path would become.
 *
 * arena    memory of the text
 * opened   receives the files that were read
 *
 * Statuses of gguf_folder_write(). */
enum gguf_status gg_back_read_config(const char *path,
                                     const struct gguf_limits *limits,
                                     struct gg_mem_arena *arena,
                                     struct gguf_paths *opened, char **out,
                                     size_t *size, struct gguf_error *err);

/* back_names.c: add the folder's tensors to its weights and count them. Tensors
 * that are numbers of keys get their data.
 *
 * GGUF_E_TENSOR   No row makes a tensor of the file, or its shape fits no row.
 * GGUF_E_TYPE     A key is not a number. */
enum gguf_status gg_back_add_tensors(struct gg_back *b,
                                     struct gguf_error *err);

/* back_view.c: a tensor of the folder, composed of the file's tensors. */
struct gg_back_made {
    struct gg_data_composed list; /* list of the one tensor */
    struct gg_composed_tensor tensor;
    struct gg_composed_part *part;
    size_t n_parts, room;
};
/* Compose tensor i of the folder. Free it with gg_back_made_fini(), also after
 * a failure. */
enum gguf_status gg_back_make_tensor(const struct gg_back *b, uint32_t i,
                                     struct gg_back_made *out,
                                     struct gguf_error *err);
void gg_back_made_fini(const struct gg_back *b, struct gg_back_made *m);
/* Do both parts have the same elements in the same order? */
bool gg_back_is_same_part(const struct gg_composed_part *a,
                          const struct gg_composed_part *b);

/* back_ternary.c: magnitudes for a tensor of the file whose numbers are -v, 0
 * and v. Their mean is v: of the numbers that are not 0, those before element
 * cut have the magnitude high, the others low. All 0 if all numbers are 0. */
struct gg_back_ternary {
    float low, high;
    uint64_t cut;
};
/* Find these magnitudes. dtype: type in the folder. GGUF_E_TENSOR: the tensor
 * has other numbers. GGUF_E_NONFINITE: dtype cannot hold them. */
enum gguf_status gg_back_find_ternary(const struct gg_back *b, size_t tensor,
                                      uint32_t dtype,
                                      struct gg_back_ternary *out,
                                      struct gguf_error *err);

/* Text of the folder beside config.json. */
struct gg_back_text {
    const char *name; /* name of the file; NULL: the folder does not have it */
    char *text;       /* contents, from malloc */
    size_t size;
};
enum { GG_BACK_CARD = 2, GG_BACK_TEXTS = 4 };
/* back_vocab.c: make the files of the tokenizer. GGUF_E_NOMEM. */
enum gguf_status gg_back_make_vocab(struct gg_back *b,
                                    struct gg_back_text text[GG_BACK_CARD],
                                    struct gguf_error *err);
/* back_projector.c: add b->image to the texts. GGUF_E_NOMEM. */
enum gguf_status gg_back_add_image(struct gg_back *b,
                                   struct gg_back_text text[GG_BACK_CARD],
                                   struct gguf_error *err);
/* back_card.c: make the model card and generation_config.json, if the file has
 * keys for them. GGUF_E_NOMEM. */
enum gguf_status gg_back_make_card(struct gg_back *b,
                                   struct gg_back_text text[2],
                                   struct gguf_error *err);

/* back_files.c: write config.json, text[GG_BACK_TEXTS] and the tensors to the
 * folder dir.
 *
 * GGUF_E_MISMATCH    dir has files of another model.
 * GGUF_E_CANCELLED   Progress asked to stop.
 * Others             Statuses of reading and writing. */
enum gguf_status gg_back_write_folder(struct gg_back *b, const char *dir,
                                      const struct gg_back_text *text,
                                      struct gguf_error *err);

/* back_paths.c: add the files of the input to p. */
enum gguf_status gg_back_note_input(const struct gg_back *b,
                                    struct gguf_paths *p,
                                    struct gguf_error *err);
/* back_paths.c: check that no file of the folder dir is an input or in
 * b->p.paths. GGUF_E_INVALID, GGUF_E_LIMIT, GGUF_E_NOMEM. */
enum gguf_status gg_back_check_paths(const struct gg_back *b, const char *dir,
                                     const struct gg_back_text *text,
                                     struct gguf_error *err);

#endif
