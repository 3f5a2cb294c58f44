/* SPDX-License-Identifier: MIT */
/* scaled_file.c - arguments of the form FILE[=SCALE] */
#include "config.h"
#include "tools/common/scaled_file.h"
#include "tools/common/paths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SCALE 1e9

/* Read text as a number and nothing else. */
static bool parse_number(const char *text, double *v)
{
    char *end;
    *v = strtod(text, &end);
    return end != text && !*end && *text != ' ';
}

static void parse_one(struct scaled *s, const char *option, const char *text,
                      enum scaled_form form)
{
    const char *mark = strrchr(text, form);
    double scale = 1;
    const bool given = mark && parse_number(mark + 1, &scale);
    const size_t size = given ? (size_t)(mark - text) : strlen(text);
    if (!given && form == SCALED_REQUIRED)
        opt_usage("%s-scaled: '%s' is not FILE:SCALE", option, text);
    if (!size)
        opt_usage("%s: '%s' names no file", option, text);
    if (given && !(fabs(scale) <= MOST_SCALE))
        opt_usage("%s: '%s': the scale is not from -1e9 to 1e9", option, text);
    s->scale = given ? (float)scale : 1;
    s->path = msg_must(malloc(size + 1));
    memcpy(s->path, text, size);
    s->path[size] = '\0';
    paths_require_local(s->path);
}

void scaled_parse(struct scaled_list *to, const char *option,
                  const struct opt_list *from)
{
    *to = (struct scaled_list){ NULL, 0 };
    if (!from->n)
        return;
    to->file = msg_must(calloc(from->n, sizeof *to->file));
    to->n = from->n;
    for (size_t i = 0; i < from->n; i++)
        parse_one(&to->file[i], option, from->arg[i],
                  (enum scaled_form)from->value[i]);
}

void scaled_fini(struct scaled_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->file[i].path);
    free(l->file);
    *l = (struct scaled_list){ NULL, 0 };
}
