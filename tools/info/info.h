/* SPDX-License-Identifier: MIT */
/* info.h - declarations that the views of gguf-info share */
#ifndef TOOLS_INFO_INFO_H
#define TOOLS_INFO_INFO_H

#include "tools/common/json.h"
#include "tools/common/load.h"
#include "tools/common/table.h"
#include "tools/common/text.h"

#include <gguf/model_base.h>
#include <gguf/stats.h>

/* Parts of the output, as bits. */
enum {
    SHOW_SUMMARY = 1,
    SHOW_METADATA = 2,
    SHOW_TENSORS = 4,
    SHOW_TYPES = 8,
    SHOW_ALL = 15, /* parts that are shown by default */
    SHOW_STATS = 16,
    SHOW_CHECK = 32,
    SHOW_HASH = 64,
    SHOW_MEMORY = 128
};

enum info_limits { INFO_ARRAYS = 1, INFO_STRINGS = 2 };

struct info_options {
    unsigned show; /* SHOW_... bits; 0: SHOW_ALL */
    bool json, markdown, alone, quiet;
    bool diff;             /* compare two models */
    bool lines;            /* one table with a line for each file */
    unsigned limits_given; /* bits of enum info_limits */
    struct text_limits limits;
    const char *glob;     /* pattern of tensors to list; NULL: all */
    int sort;             /* INFO_BY_... */
    const char *key;      /* key to print; NULL: none */
    bool raw;             /* print the bytes of a string unchanged */
    const char *values;   /* tensor whose values to print; NULL: none */
    const char *manifest; /* manifest to compare with; NULL: none */
    uint64_t n_ctx;       /* tokens of context for --memory; 0: the model's */
    uint32_t cache_dtype; /* type of keys and values for --memory */
    int hash;             /* enum gguf_digest_algo */
    bool check_header;    /* --check does not read tensor data */
    int color;            /* enum style_when */
    unsigned n_threads;   /* 0: all processors */
    struct gguf_limits file_limits;
    struct gguf_pool *pool; /* threads for reading tensor data */
    struct gguf_rows *rows; /* decoders for tensor data */
};

/* Order of --sort. */
enum {
    INFO_BY_PLACE, /* order of the file */
    INFO_BY_NAME,
    INFO_BY_SIZE,
    INFO_BY_TYPE,
    INFO_BY_ELEMENTS,
    INFO_BY_OFFSET
};

/* Parse the command line. Returns the number of operands, which are argv[1]
 * and so on. An error ends the program. */
int info_parse_options(struct info_options *o, int argc, char **argv);

/* Totals of one tensor type. */
struct info_type {
    uint32_t id;
    uint64_t n_tensors, n_elements, size;
};

/* Totals of a model, and its tensors in the order in which they are listed. */
struct info {
    const struct load *load;
    uint64_t n_elements, data_size, file_size;
    struct info_type *types; /* totals of each type, largest first */
    size_t n_types, room_types;
    uint32_t *list; /* tensor numbers */
    size_t n_list;
    /* name of general.file_type; NULL: the file does not say */
    const char *file_type;
};

void info_init(struct info *info, const struct load *load,
               const struct info_options *o);
void info_fini(struct info *info);

/* Name of a tensor type: "Q4_K", or "unknown 152" or "removed 4" in out, which
 * holds 32 bytes. */
const char *info_type_name(uint32_t id, char *out);

/* Bits of data for each element; 0 without elements. */
double info_bits(uint64_t size, uint64_t n_elements);

/* Find the hyperparameter "ARCH.suffix", or NULL; see gguf_hparam_at(). */
const struct gguf_kv *info_hparam(const struct info *info, const char *suffix);
/* Number of tokens in the vocabulary; 0 without a vocabulary. */
uint64_t info_n_vocab(const struct info *info);

/* Print warnings about the file. */
void info_warn(const struct info *info);

/* Print the title of a file. */
void info_title(const char *path, const struct info_options *o);
/* Print the heading of a part. */
void info_heading(const char *text, const struct info_options *o);

/* Print the table and free it. */
void info_table(struct table *t, const struct info_options *o);

/* Add rows about vectors and scores of texts, if the file says anything of
 * them. */
void info_add_embedding(struct table *t, const struct info *info);

/* The views. Return false if something failed or an error was found. */
bool info_text(const struct info *info, const struct info_options *o);
bool info_json(struct json *j, const struct info *info,
               const struct info_options *o);
void info_json_value(struct json *j, const struct gguf_kv *kv,
                     uint64_t max_elems);

/* Print the memory that the model needs. j NULL: text. */
void info_memory(struct json *j, const struct info *info,
                 const struct info_options *o);

/* Print the parts of a model of an unknown architecture that its tensors tell.
 * For a known architecture nothing is printed. j: write members of the open
 * summary; NULL: text. */
void info_inferred(struct json *j, const struct info *info,
                   const struct info_options *o);

/* Add rows of the summary, or write a member of it, about the towers of a
 * projector. Other files: nothing is done. */
void info_projector_rows(struct table *t, const struct info *info);
void info_projector_json(struct json *j, const struct info *info);

/* Parts that read tensor data. j: write members of the open object; NULL:
 * text. Return false if something failed or an error was found. */
bool info_check(struct json *j, const struct info *info,
                const struct info_options *o);
/* Print the findings about a file that cannot be opened. Returns false, with
 * nothing printed, if its contents are not the reason. */
bool info_broken(struct json *j, const char *path,
                 const struct info_options *o,
                 const struct gguf_file_params *params);
bool info_stats(struct json *j, const struct info *info,
                const struct info_options *o);
bool info_hash(struct json *j, const struct info *info,
               const struct info_options *o);
bool info_manifest(const struct load *load, const struct info_options *o);
bool info_values(const struct load *load, const struct info_options *o);
bool info_diff(const struct load *a, const struct load *b,
               const struct info_options *o, bool *same);

/* Print a table with a line for each file. false: one does not open. */
bool info_lines(char *const *path, int n, const struct info_options *o,
                const struct gguf_file_params *params);

/* Print one value for a script. Returns false if the key does not exist, or
 * with raw if it is not a string. */
bool info_key(const struct load *load, const struct info_options *o);

#endif
