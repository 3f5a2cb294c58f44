/* SPDX-License-Identifier: MIT */
/* os_command_line.c - the command line of Windows as arguments */
#include "config.h"
#include "base/os/os_command_line.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Copy the name of the program, in which backslashes are plain. Quotes are
 * left out. Returns the end of the text. */
static char *take_program(const char **line, char *text)
{
    const char *s = *line;
    for (bool quoted = false; *s && (quoted || !is_blank(*s)); s++)
        if (*s == '"')
            quoted = !quoted;
        else
            *text++ = *s;
    *line = s;
    return text;
}

/* Copy one argument. Backslashes are plain, except before a quote: two stand
 * for one, and one of an odd number makes the quote plain. Two quotes inside
 * quotes are a plain quote. Returns the end of the text. */
static char *take_argument(const char **line, char *text, bool *is_pattern)
{
    const char *s = *line;
    bool quoted = false;
    *is_pattern = false;
    while (*s && (quoted || !is_blank(*s))) {
        size_t n = 0;
        while (s[n] == '\\')
            n++;
        const bool halve = s[n] == '"';
        s += n;
        for (size_t i = halve ? n / 2 : n; i > 0; i--)
            *text++ = '\\';
        if (halve && n % 2) {
            *text++ = *s++;
        } else if (halve && quoted && s[1] == '"') {
            *text++ = '"';
            s += 2;
        } else if (halve) {
            quoted = !quoted;
            s++;
        } else if (*s && (quoted || !is_blank(*s))) {
            *is_pattern |= !quoted && (*s == '*' || *s == '?');
            *text++ = *s++;
        }
    }
    *line = s;
    return text;
}

size_t gg_os_command_line_split(const char *line, char *text,
                                struct gg_os_word *words)
{
    words[0] = (struct gg_os_word){ text, false };
    text = take_program(&line, text);
    *text++ = '\0';
    for (size_t n = 1;; n++) {
        while (is_blank(*line))
            line++;
        if (!*line)
            return n;
        words[n].text = text;
        text = take_argument(&line, text, &words[n].is_pattern);
        *text++ = '\0';
    }
}
