package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"sublet/openflow/controller"
)

// roleOf reads a role from a file now and whenever it is asked. A file that cannot be
// read later, or is half written, leaves the role as it is.
func roleOf(name string, log *slog.Logger) (func() controller.Role, error) {
	last, err := readRole(name)
	if err != nil {
		return nil, fmt.Errorf("--role: %w", err)
	}
	told := ""
	return func() controller.Role {
		now, err := readRole(name)
		if err == nil {
			last, told = now, ""
		} else if told != err.Error() {
			told = err.Error()
			log.Warn("the role cannot be read, and stays as it is", "err", err)
		}
		return last
	}, nil
}

func readRole(name string) (r controller.Role, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return r, err
	}
	wrong := errors.New(name + `: write "master 7" or "slave 7", where 7 is the generation`)
	words := strings.Fields(string(text))
	if len(words) != 2 || words[0] != "master" && words[0] != "slave" {
		return r, wrong
	}
	r.Master = words[0] == "master"
	if r.Generation, err = strconv.ParseUint(words[1], 10, 64); err != nil {
		return r, wrong
	}
	return r, nil
}
