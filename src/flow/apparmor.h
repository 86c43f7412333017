/* AppArmor's restriction of user namespaces (Ubuntu 23.10 and later): they can be made, but come without
 * rights, unless the program that makes them has a profile that says `userns`. */
#ifndef HC_FLOW_APPARMOR_H
#define HC_FLOW_APPARMOR_H

#include <stdbool.h>
#include <stddef.h>

#define HC_APPARMOR_SWITCH  "kernel.apparmor_restrict_unprivileged_userns"
#define HC_APPARMOR_PROFILE "/etc/apparmor.d/hotcell"

bool hc_apparmor_restricts(void);

/* The profile for the hotcell-hall of that folder. False: the folder's name has characters that a profile
 * gives a meaning to, or is too long. */
bool hc_apparmor_profile(const char *programs, char *ret_text, size_t size);

#endif
