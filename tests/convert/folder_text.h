/* SPDX-License-Identifier: MIT */
/* folder_text.h - texts of Hugging Face folders
 *
 * A section "[folder CLASS]" of tests/family/F/NAME.txt (skeleton.h) describes
 * a small folder of that class. Conversion makes a file of the text's
 * architecture of it, and the section says what the file must have. Names and
 * shapes are written from each model's definition in transformers
 * (modeling_NAME.py), or in its own repository. A line is one of
 *
 *     like CLASS            begin with config.json and the tensors of the last
 *                           folder of that class in this text
 *     without NAME ...      leave out tensors, or members in quotes
 *     use NAME ... [at P]   add blocks of tests/family/blocks.txt; P, or
 *                           nothing for "-", replaces the beginning of names:
 *                           "model.layers.%.", or "model." where there is no %
 *     "MEMBER":VALUE, ...   members of config.json; one of the same name is
 *                           replaced; @NAME is those of a block
 *     vocab WORD            a tokenizer other than BPE of bytes: wordpiece,
 *                           spiece, unigram, rwkv, plamo2 or ranked
 *     layers N              what % in names of tensors counts to; 2 otherwise
 *     in P                  names of tensors that follow begin with P
 *     NAME SIZE SIZE ...    a tensor and its shape, the slowest dimension
 *                           first; % is each layer, @ each of three experts,
 *                           {a,b} each of these words, {0-2} each number
 *     -NAME SIZE SIZE ...   a tensor that no tensor of the file is made of
 *     TO = NUMBERS          tensor TO of the file has these numbers
 *                           (numbers.h), in each layer if its name has %
 *     key KEY VALUE         a key of the file, after "ARCH." if it does not
 *                           begin with '/'; lists with commas; without a
 *                           value: there is no such key; "@NAME" is the number
 *                           of a tensor
 *     order KEY KEY ...     keys that follow each other in the file
 *     refuse "MEMBER":...   with these members the folder is refused
 *
 * It goes on in lines that begin with a blank.
 *
 * A section "[published CLASS NAME]" is a folder with the names of a published
 * model and all members of its config.json, in small sizes. They are written
 * from the models' definitions and the indexes of the repositories. All numbers
 * are 0, and no tensor beside those with '-' may be left out.
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
    void (*vocab)(const struct folder *f); /* NULL: byte-level BPE */
    struct folder_line {
        char key[128], value[400];
    } number[FOLDER_MOST_LINES], key[FOLDER_MOST_LINES];
    size_t n_numbers, n_keys;
    char order[4][400], refuse[4][400];
    size_t n_orders, n_refuse;
};

/* Call fn for each folder of all texts, or for each published one. false: a
 * text cannot be read, which is printed. */
bool folder_text_each(bool published,
                      void (*fn)(const struct folder_text *t, void *user),
                      void *user);

/* Return the first folder of a class; a class without one ends the program. */
const struct folder_text *folder_text_find(const char *class_name);

/* Set members of config.json, as a line has them. false: no block has a name
 * that they use. */
bool folder_text_set(struct folder_text *t, const char *members);

/* Make the folder in dir, but for its weights: folder_weights() writes them.
 * pairs: how the tokenizer of BPE has merges (folder_bpe()). */
void folder_text_make(const struct folder_text *t, const char *dir, bool pairs,
                      struct folder *out);

#endif
