package vnet

import (
	"strconv"
	"strings"
)

// MaxUser is the largest number that a user or group of a node has.
const MaxUser = 1<<16 - 1

var userName = lazy(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}$`)

// ValidUser says whether a text can name a user of a node, and a group: each a name
// or a number, with a colon between them.
func ValidUser(text string) bool {
	user, group, both := strings.Cut(text, ":")
	return validAccount(user) && (!both || validAccount(group))
}

func validAccount(text string) bool {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return n <= MaxUser
	}
	return userName().MatchString(text)
}

func checkUser(field, text string) error {
	if text != "" && !ValidUser(text) {
		return fieldf(field, "%q is no user: write a name or a number up to %d, and a group behind a colon if it is another, such as www-data or 1000:100", text, MaxUser)
	}
	return nil
}
