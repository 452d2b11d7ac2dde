// Command contract writes the Go form of the datapath's contract: constants of
// the same names and values, with the same comments.
//
//	contract include/contract.h contract.go
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: contract HEADER.h FILE.go")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "contract:", err)
		os.Exit(1)
	}
}

func run(header, file string) error {
	text, err := os.ReadFile(header)
	if err != nil {
		return err
	}
	out, err := translate(string(text))
	if err != nil {
		return fmt.Errorf("translate %s: %w", header, err)
	}
	return os.WriteFile(file, out, 0o644)
}

var (
	enumBegin = regexp.MustCompile(`^enum \w+ \{$`)
	value     = regexp.MustCompile(`^\t(\w+) = ([^,]*?),?(?: /\* (.*) \*/)?$`)
	word      = regexp.MustCompile(`[A-Z][A-Z0-9_]*\b`)
	suffix    = regexp.MustCompile(`\b(0x[0-9a-f]+|\d+)u\b`)
)

// translate makes Go of a header's text. A line that it does not know is an
// error.
func translate(text string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated from include/contract.h by tools/contract; DO NOT EDIT.\n\npackage bpf\n")
	_, body, found := strings.Cut(text, "#pragma once\n")
	if !found {
		return nil, fmt.Errorf("has no line #pragma once")
	}
	comment := false
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		was := comment
		switch {
		case strings.HasPrefix(line, "/* ") || comment:
			comment = !strings.HasSuffix(line, "*/")
			fmt.Fprintln(&b, "//", prose(line, was))
		case enumBegin.MatchString(line):
			fmt.Fprintln(&b, "const (")
		case line == "};":
			fmt.Fprintln(&b, ")")
		case line == "":
			fmt.Fprintln(&b)
		default:
			m := value.FindStringSubmatch(line)
			if m == nil {
				return nil, fmt.Errorf("cannot read %q", line)
			}
			fmt.Fprintf(&b, "\t%s = %s", goName(m[1]), word.ReplaceAllStringFunc(suffix.ReplaceAllString(m[2], "$1"), goName))
			if m[3] != "" {
				fmt.Fprintf(&b, " // %s", m[3])
			}
			fmt.Fprintln(&b)
		}
	}
	return format.Source(b.Bytes())
}

// prose is the text of one line of a comment.
func prose(line string, within bool) string {
	begin := "/* "
	if within {
		begin = " * "
	}
	return strings.TrimSuffix(strings.TrimPrefix(line, begin), " */")
}

// goName is MARK_PROBE as MarkProbe; words that are names of protocols stay.
func goName(name string) string {
	var b strings.Builder
	for _, w := range strings.Split(name, "_") {
		switch w {
		case "VNI", "CB", "TOS", "VXLAN", "GPE", "GUE", "LISP":
			b.WriteString(w)
		default:
			b.WriteString(w[:1] + strings.ToLower(w[1:]))
		}
	}
	return b.String()
}
