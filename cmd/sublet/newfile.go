package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// create makes or empties a file of the caller's. It follows no link as the
// last name: root may be writing in /tmp, where others put links.
func create(name string, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, mode)
	if errors.Is(err, syscall.ELOOP) {
		return nil, badInput{fmt.Errorf("%s is a link: name the file itself", name)}
	}
	if err != nil {
		return nil, badInput{err}
	}
	return f, nil
}

// write writes a whole file of the caller's.
func write(name string, text []byte) error {
	f, err := create(name, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
