/* folder_vocab.c - tokenizers of folders that are not byte-level BPE */
#include "config.h"
#include "tests/convert/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

FILE *folder_create(const struct folder *f, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    FILE *o = fopen(path, "wb");
    if (!o) {
        printf("Bail out! %s\n", path);
        exit(99);
    }
    return o;
}

void folder_json_text(FILE *o, const char *s)
{
    fputc('"', o);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(o, "\\%c", *s);
        else if ((unsigned char)*s < ' ')
            fprintf(o, "\\u%04x", (unsigned)*s);
        else
            fputc(*s, o);
    fputc('"', o);
}

/* ---- WordPiece ---- */

const char *folder_wordpiece_token(int id, char buf[32])
{
    static const char *const first[] = { "[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                         "[MASK]" };
    static const char *const words[] = {
        "hello",  "world", "un",   "##aff",        "##able",       "##ord",
        "the",    "cafe",  "##fe", "\xe4\xb8\xad", "\xe6\x96\x87", "Hello",
        "##ello", "na",    "##iv", "caf\xc3\xa9",  "##\xc3\xa9",
    };
    const int n_first = 5, n_letters = 36, n_marks = 32;
    const int n_words = (int)(sizeof words / sizeof *words);
    if (id < n_first)
        return first[id];
    int i = id - n_first;
    if (i < 2 * n_letters) {
        const int k = i % n_letters;
        sprintf(buf, "%s%c", i < n_letters ? "" : "##",
                k < 26 ? 'a' + k : '0' + k - 26);
        return buf;
    }
    i -= 2 * n_letters;
    if (i < n_marks) { /* punctuation of ASCII */
        int c = '!';
        for (; i; i--)
            c += c == '/' ? 11 : c == '@' ? 27 : c == '`' ? 27 : 1;
        sprintf(buf, "%c", c);
        return buf;
    }
    i -= n_marks;
    if (i < n_words)
        return words[i];
    sprintf(buf, "[unused%d]", i - n_words);
    return buf;
}

void folder_wordpiece(const struct folder *f, bool json)
{
    char buf[32];
    FILE *o = folder_create(f, json ? "tokenizer.json" : "vocab.txt");
    if (json) {
        fputs("{\"version\":\"1.0\",\"added_tokens\":[", o);
        for (int i = 0; i < 5; i++)
            fprintf(o,
                    "%s{\"id\":%d,\"content\":\"%s\",\"special\":true,"
                    "\"normalized\":false}",
                    i ? "," : "", i, folder_wordpiece_token(i, buf));
        fputs("],\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":"
              "true,\"handle_chinese_chars\":true,\"strip_accents\":null,"
              "\"lowercase\":true},\"pre_tokenizer\":{\"type\":"
              "\"BertPreTokenizer\"},\"post_processor\":{\"type\":"
              "\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
              "\"[CLS]\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\","
              "\"type_id\":0}},{\"SpecialToken\":{\"id\":\"[SEP]\","
              "\"type_id\":0}}],\"pair\":[{\"SpecialToken\":{\"id\":\"[CLS]\""
              "}},{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":"
              "\"[SEP]\"}},{\"Sequence\":{\"id\":\"B\"}},{\"SpecialToken\":{"
              "\"id\":\"[SEP]\"}}]},\"decoder\":{\"type\":\"WordPiece\","
              "\"prefix\":\"##\",\"cleanup\":true},\"model\":{\"type\":"
              "\"WordPiece\",\"unk_token\":\"[UNK]\","
              "\"continuing_subword_prefix\":\"##\","
              "\"max_input_chars_per_word\":100,\"vocab\":{",
              o);
    }
    for (int i = 0; i < FOLDER_VOCAB; i++) {
        const char *t = folder_wordpiece_token(i, buf);
        if (json) {
            fputs(i ? "," : "", o);
            folder_json_text(o, t);
            fprintf(o, ":%d", i);
        } else {
            fprintf(o, "%s\n", t);
        }
    }
    if (json)
        fputs("}}}", o);
    fclose(o);
    folder_text(f, "tokenizer_config.json",
                "{\"cls_token\":\"[CLS]\",\"sep_token\":\"[SEP]\","
                "\"unk_token\":\"[UNK]\",\"pad_token\":{\"content\":"
                "\"[PAD]\"},\"mask_token\":\"[MASK]\",\"do_lower_case\":true,"
                "\"tokenizer_class\":\"BertTokenizer\"}");
}
