/* SPDX-License-Identifier: MIT */
/* folder.h - a Hugging Face folder that is read
 *
 * A folder has texts (config.json and others), a model card, and weights, which
 * are a list of tensors.
 *
 * Usual sequence of calls:
 * 1. gg_folder_open()
 * 2. gg_folder_read_texts(), gg_folder_find_config(); weights are opened by the
 *    caller
 * 3. gg_folder_get_config() and the like, to describe the output
 * 4. gg_folder_close_texts() once the folder has been described
 * 5. gg_folder_close() once the output has been written
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
    struct gg_json json; /* root NULL: the folder has no such file */
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
    /* callback of notes, base model; kept */
    const struct gguf_convert_params *p;
    struct gg_mem_arena *arena; /* memory of names; kept */
    struct gg_dir dir;
    struct gguf_paths *opened; /* all local files that were read */
    struct gg_convert_text text[GG_CONVERT_N_TEXTS];
    json_t *config; /* config.json of the language model */
    json_t *read;   /* object with a member for each member of config that was
                   * read; NULL: they are not noted */
    struct gg_mapfile card;         /* README.md; fd -1: none */
    struct gg_convert_text adapter; /* adapter_config.json */
    struct gg_safetensors *weights;
    /* prefix that the folder's names have and the class's lack (name_prefix.c);
     * empty: none */
    struct gguf_str prefix;
    /* prefix that the class's names have and the folder's lack; "": none */
    char added[GG_CONVERT_PREFIX];
};

/* folder.c: open the folder at path. Reads no files.
 *
 * p, arena   must outlive f
 *
 * GGUF_E_NOTFOUND   path does not exist.
 * GGUF_E_INVALID    path is a file.
 * GGUF_E_NOMEM
 *
 * Close f with gg_folder_close(), also after a failure. */
enum gguf_status gg_folder_open(struct gg_folder *f, const char *path,
                                const struct gguf_convert_params *p,
                                struct gg_mem_arena *arena,
                                struct gguf_error *err);
/* folder.c: close the folder. f may be zeroed. */
void gg_folder_close(struct gg_folder *f);
/* folder.c: read the JSON texts of a folder, as far as it has them.
 *
 * GGUF_E_FORMAT     A text is malformed.
 * GGUF_E_IO, GGUF_E_NOMEM */
enum gguf_status gg_folder_read_texts(struct gg_folder *f,
                                      struct gguf_error *err);
/* folder.c: set f->config to the language model's part of config.json.
 * GGUF_E_NOTFOUND: config.json is missing. */
enum gguf_status gg_folder_find_config(struct gg_folder *f,
                                       struct gguf_error *err);
/* folder.c: close these texts and the card. */
void gg_folder_close_texts(struct gg_folder *f);
/* Members of tokenizer.json that are parsed only when they are needed; ends
 * with NULL. */
extern const char *const gg_folder_lazy_members[];
/* Map a file of the folder. *there: the file exists. */
enum gguf_status gg_folder_map(struct gg_folder *f, const char *name,
                               struct gg_mapfile *m, bool *there,
                               struct gguf_error *err);
/* Read a JSON text of the folder. json->root is NULL if the file does not
 * exist. Call gg_json_fini(json), then close m; both are allowed after a
 * failure.
 */
enum gguf_status gg_folder_read_json(struct gg_folder *f, const char *name,
                                     struct gg_mapfile *m,
                                     struct gg_json *json,
                                     struct gguf_error *err);
/* Name of the folder. For a repository in a cache
 * (models--OWNER--NAME/snapshots/HASH) it is OWNER/NAME; else it is the last
 * segment of the path that says something about the model. GGUF_E_IO,
 * GGUF_E_NOMEM. */
enum gguf_status gg_folder_read_name(struct gg_folder *f, struct gguf_str *out,
                                     struct gguf_error *err);
/* Does a segment of a path say nothing about the model: ".", a hash,
 * "checkpoint-500"? */
bool gg_folder_is_generic_name(struct gguf_str name);
/* Put the name of the file before the message of an error. Returns st. */
enum gguf_status gg_convert_prefix_error(const char *name, enum gguf_status st,
                                         struct gguf_error *err);

/* config.json for functions of families. */
static inline struct gg_hf_config gg_folder_config(const struct gg_folder *f)
{
    return (struct gg_hf_config){ f->config,
                                  f->text[GG_CONVERT_CONFIG].json.root,
                                  f->read };
}

/* Find a value in config.json, first in the language model's part, then in the
 * whole.
 *
 * names   names separated by blanks; the first that exists and is not null is
 *         returned; "a.b" is member b of member a
 *
 * NULL: not found. */
const json_t *gg_folder_get_config(const struct gg_folder *f,
                                   const char *names);
/* Find a whole number above 0 in config.json, by names as in
 * gg_folder_get_config(). false: not found, or another value. */
bool gg_folder_get_count(const struct gg_folder *f, const char *names,
                         int64_t *out);
/* Set a member of config.json in the language model's part. Takes value; NULL
 * stands for a failed allocation. GGUF_E_NOMEM. */
enum gguf_status gg_folder_set_config(struct gg_folder *f, const char *name,
                                      json_t *value, struct gguf_error *err);

/* folder_note.c: pass a line to the caller's callback, as
 * GGUF_CONVERT_WARNING. */
void gg_folder_warn(const struct gg_folder *f, const char *format, ...)
    GGUF_PRINTF(2, 3);
/* folder_note.c: warn of members of config.json that were not read, if f->read
 * has those that were. */
void gg_folder_warn_unread_config(const struct gg_folder *f);
/* folder_note.c: pass a line to the caller's callback, as
 * GGUF_CONVERT_REMARK. */
void gg_folder_note(const struct gg_folder *f, const char *format, ...)
    GGUF_PRINTF(2, 3);

/* rope_config.c: make rotary parameters of config.json consistent. Called
 * before they are read. Notes each contradiction. GGUF_E_HPARAM: a member has
 * the wrong type. GGUF_E_NOMEM. */
enum gguf_status gg_folder_fix_rope(struct gg_folder *f,
                                    struct gguf_error *err);
/* weight_files.c: note files of weights in the folder that are not read.
 * GGUF_E_IO, GGUF_E_NOMEM. */
enum gguf_status gg_folder_note_unread(struct gg_folder *f,
                                       struct gguf_error *err);
/* quantized.c: combine weights that are stored in several tensors by a
 * quantization method. GGUF_E_UNSUPPORTED: the method is not supported. */
enum gguf_status gg_folder_join_quantized(struct gg_folder *f,
                                          struct gguf_error *err);

/* Limit of the vocabulary: 2 n + GG_CONVERT_MORE_TOKENS tokens for an embedding
 * of n rows. */
#define GG_CONVERT_MORE_TOKENS (INT64_C(1) << 16)

#endif
