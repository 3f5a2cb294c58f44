/* SPDX-License-Identifier: MIT */
/* folder_vocab.c - writes tokenizers other than byte-level BPE */
#include "config.h"
#include "tests/convert/folder.h"

#include "base/bytes.h"

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

/* ---- pieces that keep their merges ---- */

/* 256 bytes, letters, "ab", "abc", and special tokens: 260 rows. */
void folder_ranked(const struct folder *f)
{
    static const char text[] =
        "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":0,\"content\":"
        "\"<bos>\",\"special\":true},{\"id\":258,\"content\":\"<|tool_call>\","
        "\"special\":true}],\"normalizer\":{\"type\":\"Replace\",\"pattern\":{"
        "\"String\":\" \"},\"content\":\"\xe2\x96\x81\"},\"pre_tokenizer\":"
        "null,\"decoder\":{\"type\":\"Sequence\",\"decoders\":[]},\"model\":{"
        "\"type\":\"BPE\",\"byte_fallback\":true,\"fuse_unk\":true,\"vocab\":{"
        "\"\xe2\x96\x81\":257,\"a\":250,\"b\":251,\"c\":252,\"ab\":253,"
        "\"abc\":254,\"\xe2\x96\x81"
        "a\":255,\"B\":256";
    FILE *o = folder_create(f, "tokenizer.json");
    fputs(text, o);
    for (int i = 1; i < 250; i++)
        fprintf(o, ",\"<0x%02X>\":%d", i, i);
    fputs("},\"merges\":[\"a b\",\"ab c\",\"\xe2\x96\x81 a\"]}}", o);
    fclose(o);
    o = folder_create(f, "tokenizer_config.json");
    fputs("{\"bos_token\":\"<bos>\",\"add_bos_token\":false}", o);
    fclose(o);
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
    if (i < n_marks) { /* ASCII punctuation */
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

/* ---- Unigram ---- */

const char *folder_unigram_piece(int id, char buf[32], float *score)
{
    static const char *const first[] = { "<pad>", "</s>", "<unk>" };
    static const char *const words[] = { "_the", "he",    "ll",  "_hello",
                                         "_un",  "able",  "_a",  "_able",
                                         "un",   "_wo",   "rld", "_world",
                                         "lo",   "hello", "_h",  "ello" };
    const int n_words = (int)(sizeof words / sizeof *words);
    *score = -2 - (float)id / 64;
    if (id < 3) {
        *score = 0;
        return first[id];
    }
    if (id < 3 + n_words) {
        sprintf(buf, "%s%s", *words[id - 3] == '_' ? "\xe2\x96\x81" : "",
                words[id - 3] + (*words[id - 3] == '_'));
        return buf;
    }
    id -= 3 + n_words;
    if (id == 0)
        return "\xe2\x96\x81";
    *score -= 1;
    if (--id < 36)
        sprintf(buf, "%c", id < 26 ? 'a' + id : '0' + id - 26);
    else
        sprintf(buf, "\xe2\x96\x81x%dx", id - 36);
    return buf;
}

static void put32(uint8_t *out, uint32_t u)
{
    for (int b = 0; b < 4; b++)
        out[b] = (uint8_t)(u >> 8 * b);
}

/* The root leads to units from 256 on, and letter c to a unit at 512 + c. */
void folder_charsmap(uint8_t out[FOLDER_CHARSMAP])
{
    memset(out, 0, FOLDER_CHARSMAP);
    put32(out, 4 * 1024);
    put32(out + 4, UINT32_C(256) << 10);
    for (uint32_t c = 'A'; c <= 'Z'; c++) {
        const uint32_t at = 256 ^ c, text = 512 + c, no = c - 'A';
        put32(out + 4 + 4 * at, c | 1u << 8 | (at ^ text) << 10);
        put32(out + 4 + 4 * text, UINT32_C(1) << 31 | 2 * no);
        out[4 + 4 * 1024 + 2 * no] = (uint8_t)('a' + no);
    }
}

void folder_base64(FILE *o, const uint8_t *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqr"
                                 "stuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t x = (uint32_t)p[i] << 16 |
                           (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                           (i + 2 < n ? p[i + 2] : 0);
        for (unsigned k = 0; k < 4; k++)
            fputc(i + k > n ? '=' : digits[x >> (18 - 6 * k) & 63], o);
    }
}

static size_t put_varint(uint8_t *out, uint64_t v)
{
    size_t n = 0;
    for (; v > 127; v >>= 7)
        out[n++] = (uint8_t)(v | 128);
    out[n++] = (uint8_t)v;
    return n;
}

size_t folder_number(uint8_t *out, unsigned no, uint64_t value)
{
    const size_t n = put_varint(out, no << 3);
    return n + put_varint(out + n, value);
}

void folder_proto(FILE *o, unsigned no, const void *data, size_t n)
{
    uint8_t head[20];
    size_t k = put_varint(head, no << 3 | 2);
    k += put_varint(head + k, n);
    fwrite(head, 1, k, o);
    fwrite(data, 1, n, o);
}

void folder_proto_piece(FILE *o, const char *text, float score, int kind)
{
    uint8_t b[200];
    const size_t n = strlen(text);
    b[0] = 1 << 3 | 2;
    b[1] = (uint8_t)n;
    memcpy(b + 2, text, n);
    b[n + 2] = 2 << 3 | 5;
    put32(b + n + 3, gg_bytes_f32_bits(score));
    folder_proto(o, 1, b, n + 7 + folder_number(b + n + 7, 3, (uint64_t)kind));
}

static void write_spiece(const struct folder *f)
{
    static uint8_t map[FOLDER_CHARSMAP], norm[FOLDER_CHARSMAP + 40];
    uint8_t trainer[20];
    char buf[32];
    FILE *o = folder_create(f, "spiece.model");
    for (int i = 0; i < FOLDER_VOCAB; i++) {
        float score;
        const char *piece = folder_unigram_piece(i, buf, &score);
        folder_proto_piece(o, piece, score, i < 2 ? 3 : i == 2 ? 2 : 1);
    }
    folder_charsmap(map);
    folder_proto(o, 2, trainer, folder_number(trainer, 3, 1));
    size_t n = put_varint(norm, 2 << 3 | 2);
    n += put_varint(norm + n, sizeof map);
    memcpy(norm + n, map, sizeof map);
    n += sizeof map;
    n += folder_number(norm + n, 3, 1);
    n += folder_number(norm + n, 4, 1);
    folder_proto(o, 3, norm, n);
    fclose(o);
}

static void write_unigram_json(const struct folder *f)
{
    static uint8_t map[FOLDER_CHARSMAP];
    char buf[32];
    FILE *o = folder_create(f, "tokenizer.json");
    fputs("{\"version\":\"1.0\",\"added_tokens\":[", o);
    for (int i = 0; i < 3; i++) {
        float score;
        fprintf(o, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true}",
                i ? "," : "", i, folder_unigram_piece(i, buf, &score));
    }
    fputs("],\"normalizer\":{\"type\":\"Precompiled\","
          "\"precompiled_charsmap\":\"",
          o);
    folder_charsmap(map);
    folder_base64(o, map, sizeof map);
    fputs("\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
          "\"type\":\"WhitespaceSplit\"},{\"type\":\"Metaspace\","
          "\"replacement\":\"\xe2\x96\x81\",\"add_prefix_space\":true}]},"
          "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
          "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":"
          "\"</s>\"}}],\"pair\":[{\"Sequence\":{\"id\":\"A\"}},{"
          "\"SpecialToken\":{\"id\":\"</s>\"}},{\"Sequence\":{\"id\":\"B\""
          "}},{\"SpecialToken\":{\"id\":\"</s>\"}}]},\"model\":{\"type\":"
          "\"Unigram\",\"unk_id\":2,\"vocab\":[",
          o);
    for (int i = 0; i < FOLDER_VOCAB; i++) {
        float score;
        fputs(i ? ",[" : "[", o);
        folder_json_text(o, folder_unigram_piece(i, buf, &score));
        fprintf(o, ",%.9g]", (double)score);
    }
    fputs("]}}", o);
    fclose(o);
}

void folder_unigram(const struct folder *f, enum folder_unigrams form)
{
    if (form == FOLDER_UGM_JSON)
        write_unigram_json(f);
    else
        write_spiece(f);
    folder_text(f, "tokenizer_config.json",
                "{\"eos_token\":\"</s>\",\"unk_token\":\"<unk>\","
                "\"pad_token\":\"<pad>\"}");
}

/* ---- RWKV ---- */

const char *folder_rwkv_token(int id, char buf[8], size_t *n)
{
    static const char *const words[] = { "ab", "abc", "\xc3\xa9's" };
    if (id > 256) {
        *n = strlen(words[id - 257]);
        return words[id - 257];
    }
    buf[0] = (char)(unsigned char)(id - 1);
    *n = 1;
    return buf;
}

void folder_rwkv(const struct folder *f)
{
    FILE *o = folder_create(f, "rwkv_vocab_v20230424.txt");
    for (int b = 0; b < 256; b++) {
        fprintf(o, "%d ", b + 1);
        if (b >= 128)
            fprintf(o, "b'\\x%02x' 1\n", (unsigned)b);
        else if (b == '\'')
            fputs("\"'\" 1\n", o);
        else if (b == '\\')
            fputs("'\\\\' 1\n", o);
        else
            fprintf(o, b < ' ' || b > '~' ? "'\\x%02x' 1\n" : "'%c' 1\n",
                    (unsigned)b);
    }
    fputs("257 'ab' 2\n258 b'abc' 3\n259 \"\xc3\xa9's\" 4\n", o);
    fclose(o);
    folder_text(f, "tokenizer_config.json", "{}");
}

/* ---- PLaMo 2 ---- */

void folder_plamo2(const struct folder *f)
{
    FILE *o = folder_create(f, "tokenizer.jsonl");
    fputs("[\"<|plamo:unk|>\", 0.0, \"UNKNOWN\"]\n"
          "[\"<|plamo:bos|>\", 0.0, \"CONTROL\"]\n"
          "[\"<|plamo:eos|>\", 0.0, \"CONTROL\", null]\n"
          "[\"<|plamo:pad|>\", 0.0, \"NORMAL\", 1, 2]\n"
          "[\"<|plamo:op|>\", 0.0]\n",
          o);
    for (int i = 0; i < 256 - 6; i++)
        fprintf(o, "[\"<0x%02X>\", -20.5, \"BYTE\", 0]\n", i);
    fputs("[\"the\", -3.25, \"NORMAL\"]\n\n[\"\\u3042\", -4.5, \"NORMAL\"]",
          o);
    fclose(o);
    folder_text(f, "tokenizer_config.json",
                "{\"bos_token\":\"<|plamo:bos|>\","
                "\"eos_token\":\"<|plamo:eos|>\","
                "\"unk_token\":\"<|plamo:unk|>\","
                "\"pad_token\":\"<|plamo:pad|>\"}");
}
