/* SPDX-License-Identifier: MIT */
/* folder.h - a Hugging Face folder that was read
 *
 * A folder is texts (config.json and others), a model card, and weights, which
 * are a list of tensors. All of it is opened once; texts are closed when the
 * folder has been described, weights are read until the output is written.
 * Files of another subject read a folder through this header and keep nothing.
 */
#ifndef GG_CONVERT_FOLDER_FOLDER_H
#define GG_CONVERT_FOLDER_FOLDER_H

#include "base/compiler.h"
#include "base/json.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "convert/hf_config.h"
#include "data/safetensors.h"
#include "gguf/convert.h"

/* A JSON text of the folder. */
struct gg_convert_text {
    const char *name; /* name of the file */
    struct gg_mapfile map;
    struct gg_json json; /* root is NULL without such a file */
};

enum gg_convert_texts {
    GG_CONVERT_CONFIG,
    GG_CONVERT_GENERATION,
    GG_CONVERT_TOKENIZER,
    GG_CONVERT_TOKENIZER_CONFIG,
    GG_CONVERT_ADDED,
    GG_CONVERT_N_TEXTS
};

enum { GG_CONVERT_PREFIX = 64 };

struct gg_folder {
    const struct gguf_convert_params *p; /* notes, base; kept */
    struct gg_mem_arena *arena;          /* memory of names; kept */
    struct gg_dir dir;
    struct gguf_paths *opened; /* every file of this machine that was read */
    struct gg_convert_text text[GG_CONVERT_N_TEXTS];
    json_t *config;                 /* config.json of the language model */
    struct gg_mapfile card;         /* README.md; fd -1: no such file */
    struct gg_convert_text adapter; /* adapter_config.json */
    struct gg_safetensors *weights;
    struct gguf_str prefix;        /* prefix of the folder's names that the
                                    * class's lack (name_prefix.c), or empty */
    char added[GG_CONVERT_PREFIX]; /* prefix of the class's names that the
                                    * folder's lack; "": none */
};

/* folder.c: open the folder at path, whose files are not read yet; p and arena
 * are kept. After a failure f is to be closed, too; a zeroed struct may be.
 * GGUF_E_NOTFOUND, GGUF_E_INVALID (a file), GGUF_E_NOMEM. */
enum gguf_status gg_folder_open(struct gg_folder *f, const char *path,
                                const struct gguf_convert_params *p,
                                struct gg_mem_arena *arena,
                                struct gguf_error *err);
void gg_folder_close(struct gg_folder *f);
/* folder.c: open the texts of a folder; close them and the card.
 * GGUF_E_NOTFOUND (config.json), GGUF_E_FORMAT, GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_folder_read_texts(struct gg_folder *f,
                                      struct gguf_error *err);
void gg_folder_close_texts(struct gg_folder *f);
/* Members of tokenizer.json that are read where they lie, when wanted; ends
 * with NULL. */
extern const char *const gg_folder_lazy_members[];
/* Have a file of the folder in memory; *there is false without that file. */
enum gguf_status gg_folder_map(struct gg_folder *f, const char *name,
                               struct gg_mapfile *m, bool *there,
                               struct gguf_error *err);
/* Read a JSON text of the folder; json->root is NULL if the folder has no such
 * file. The caller ends json and then closes m, and may do so after a failure.
 */
enum gguf_status gg_folder_read_json(struct gg_folder *f, const char *name,
                                     struct gg_mapfile *m,
                                     struct gg_json *json,
                                     struct gguf_error *err);
/* Name of the folder: the last segment of its path that is a name, without a
 * revision; OWNER/NAME of a repository in a cache
 * (models--OWNER--NAME/snapshots/HASH). GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_folder_read_name(struct gg_folder *f, struct gguf_str *out,
                                     struct gguf_error *err);
/* Does the segment of a path say nothing of the model: ".", a hash,
 * "checkpoint-500"? */
bool gg_folder_is_generic_name(struct gguf_str name);
/* st, with the name of the file before the message. */
enum gguf_status gg_convert_prefix_error(const char *name, enum gguf_status st,
                                         struct gguf_error *err);

/* config.json as functions of families read it. */
static inline struct gg_hf_config gg_folder_config(const struct gg_folder *f)
{
    return (struct gg_hf_config){ f->config,
                                  f->text[GG_CONVERT_CONFIG].json.root };
}

/* Find a value in the language model's part of config.json, or else in the
 * whole: the first of names, separated by blanks, that is there and not null;
 * "a.b" is member b of member a. Return NULL if none is. */
const json_t *gg_folder_get_config(const struct gg_folder *f,
                                   const char *names);
/* Find a value as gg_folder_get_config() does, as a whole number above 0.
 * Return false if it is another value or missing. */
bool gg_folder_get_count(const struct gg_folder *f, const char *names,
                         int64_t *out);
/* Set a member of config.json of the language model; value is given, NULL:
 * there was no memory for it. GGUF_E_NOMEM. */
enum gguf_status gg_folder_set_config(struct gg_folder *f, const char *name,
                                      json_t *value, struct gguf_error *err);

/* folder_note.c: give the caller's callback a line of kind GGUF_CONVERT_WARNING
 * or GGUF_CONVERT_REMARK. */
void gg_folder_warn(const struct gg_folder *f, const char *format, ...)
    GG_PRINTF(2, 3);
void gg_folder_note(const struct gg_folder *f, const char *format, ...)
    GG_PRINTF(2, 3);

/* rope_config.c: resolve contradictory rotary parameters of config.json in its
 * tree. Called before anything reads them. Notes each contradiction.
 * GGUF_E_HPARAM: a member of the wrong type. GGUF_E_NOMEM. */
enum gguf_status gg_folder_fix_rope(struct gg_folder *f,
                                    struct gguf_error *err);
/* weight_files.c: note files of weights that the folder has and that are not
 * read. GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_folder_note_unread(struct gg_folder *f,
                                       struct gguf_error *err);
/* quantized.c: put weights together that are stored in several tensors.
 * GGUF_E_UNSUPPORTED: a method that is not read. */
enum gguf_status gg_folder_join_quantized(struct gg_folder *f,
                                          struct gguf_error *err);

/* A vocabulary has at most 2 n + GG_CONVERT_MORE_TOKENS tokens if the embedding
 * has n rows. */
#define GG_CONVERT_MORE_TOKENS (INT64_C(1) << 16)

#endif
