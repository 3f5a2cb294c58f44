/* SPDX-License-Identifier: MIT */
/* address.h - addresses without what others must not see
 *
 * User, password, query and fragment of an address may be secrets: a token, a
 * signature. Messages, reports and metadata have addresses without them.
 */
#ifndef TOOLS_ADDRESS_H
#define TOOLS_ADDRESS_H

#include <stddef.h>

/* Remove user, password, query and fragment of every address, SCHEME://..., in
 * the text s, which becomes shorter. An address ends at a blank. */
void address_remove_secrets(char *s);

/* The parts of an address that are hidden: user is what stands before '@' with
 * it, query begins with '?' or '#'. */
struct address_secret {
    const char *user, *query;
    size_t n_user, n_query;
};
/* Find them in the one address url; false: it has none. */
int address_find_secret(const char *url, struct address_secret *out);

#endif
