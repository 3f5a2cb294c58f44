/* SPDX-License-Identifier: MIT */
/* folder_text.h - descriptions of Hugging Face folders
 *
 * A section "[folder CLASS]" of tests/family/F/NAME.txt (skeleton.h) describes
 * a small folder of that class, and the file of the text's architecture that
 * it must become. Names and shapes follow each model's definition in
 * transformers (modeling_NAME.py), or in its own repository. A line is one of
 *
 *     like CLASS            begin with config.json and the tensors of the last
 *                           folder of that class in this text
 *     without NAME ...      leave out tensors, or members in quotes
 *     use NAME ... [at P]   add blocks of tests/family/blocks.txt; P, or
 *                           nothing for "-", replaces the start of names:
 *                           "model.layers.%.", or "model." in names without %
 *     "MEMBER":VALUE, ...   members of config.json, replacing those of the same
 *                           names; @NAME stands for the members of a block
 *     vocab WORD            a tokenizer other than BPE of bytes: wordpiece,
 *                           spiece, unigram, rwkv, plamo2 or ranked
 *     layers N              number of layers that % stands for (default: 2)
 *     in P                  the next tensors' names begin with P
 *     NAME SIZE SIZE ...    a tensor and its shape, the slowest dimension
 *                           first; % is each layer, @ each of three experts,
 *                           {a,b} each of these words, {0-2} each number
 *     -NAME SIZE SIZE ...   a tensor that no tensor of the file is made of
 *     TO = NUMBERS          tensor TO of the file has these numbers
 *                           (numbers.h), in each layer if its name has %
 *     key KEY VALUE         a key of the file, after "ARCH." if it does not
 *                           begin with '/'; lists with commas; no value: the
 *                           key must be missing; "@NAME" is the number of a
 *                           tensor
 *     order KEY KEY ...     keys that follow each other in the file
 *     refuse "MEMBER":...   with these members the folder is refused
 *
 * A line that begins with a blank continues the line before.
 *
 * A section "[published CLASS NAME]" describes a folder with the tensor names
 * of a published model and all members of its config.json, with small sizes.
 * They follow the models' definitions and the indexes of the repositories. All
 * numbers are 0, and no tensor may be left out except those with '-'.
 */
#ifndef TESTS_CONVERT_FOLDER_TEXT_H
#define TESTS_CONVERT_FOLDER_TEXT_H

#include "tests/convert/folder.h"

enum { FOLDER_MOST_LINES = 16 };

struct folder_text {
    char class_name[64], arch[64];
    char
        published[128]; /* name of the model; empty: the section is a folder */
    char config[4000];  /* members of config.json */
    char tensors[80000]; /* lines for folder_tensors() */
    char left[8000];     /* lines of tensors that are left out */
    int layers;
    void (*vocab)(const struct folder *f); /* writes the tokenizer; NULL: byte-
                                            * level BPE */
    struct folder_line {
        char key[128], value[400];
    } number[FOLDER_MOST_LINES], key[FOLDER_MOST_LINES];
    size_t n_numbers, n_keys;
    char order[4][400], refuse[4][400];
    size_t n_orders, n_refuse;
};

/* Call fn for each folder of all texts, or for each published one. false: a
 * text is malformed, which is printed. */
bool folder_text_each(bool published,
                      void (*fn)(const struct folder_text *t, void *user),
                      void *user);

/* The first folder of a class. Ends the program if it is missing. */
const struct folder_text *folder_text_find(const char *class_name);

/* Set members of config.json, written as in a line. false: a block that they
 * use is unknown. */
bool folder_text_set(struct folder_text *t, const char *members);

/* Make the folder in dir without its weights, which folder_weights() writes.
 * pairs: form of BPE's merges, see folder_bpe(). */
void folder_text_make(const struct folder_text *t, const char *dir, bool pairs,
                      struct folder *out);

#endif
