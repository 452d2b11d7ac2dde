package main

import (
	"strconv"
	"strings"
	"unicode"
)

// harmless shows, in place of doing it, what text from others would have a terminal
// do: escape sequences and other control characters, and characters that change the
// order in which text is read. Lines stay lines.
func harmless(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || !acts(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteToASCII(string(r)), `"`))
	}
	return b.String()
}

// harmlessLine is harmless, in one line.
func harmlessLine(text string) string { return strings.ReplaceAll(harmless(text), "\n", `\n`) }

// acts says whether a terminal does something else with a character than show it.
func acts(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// harmlessJSON writes those characters of JSON that it may hold as they are in the
// other form that it has for them.
func harmlessJSON(text []byte) string {
	var b strings.Builder
	for _, r := range string(text) {
		if r == '\n' || !acts(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(`\u` + strconv.FormatInt(0x10000+int64(r), 16)[1:])
	}
	return b.String()
}
