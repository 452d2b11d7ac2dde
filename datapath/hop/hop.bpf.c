//go:build ignore

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The types of chaining, for Go. Nothing here is loaded. */
#include "port_ref.h"

LICENSE;
