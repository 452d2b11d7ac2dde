package topology

import (
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"sublet/vnet"
)

// Legible makes a name of a text: letters lose their accents, everything that
// cannot stand in a name becomes '-'. It may be empty.
func Legible(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(text[:min(len(text), 4*vnet.MaxName)]) {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			b.WriteRune(r)
		case r >= 0x300 && r < 0x370: // accents, which NFKD sets behind their letters
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-_")
	return strings.TrimRight(name[:min(len(name), vnet.MaxName-numberRoom)], "-_")
}

// numberRoom is what a name leaves for the number of a duplicate.
const numberRoom = len("-50000") // vnet.MaxHosts

// Names are names that are taken, each with the number of its last duplicate,
// so that thousands of equal ones do not try every number again.
type Names map[string]int

// Take takes a name, or the first of its numbered variants that is free.
func (n Names) Take(name string) string {
	free := name
	for i := n[name]; n[free] > 0; {
		i++
		n[name] = i
		free = fmt.Sprintf("%s-%d", name, i)
	}
	n[free] = max(n[free], 1)
	return free
}

// FirstLegible is the first of the texts that a name can be made of, as a name; n if
// there is none.
func FirstLegible(texts ...string) string {
	for _, text := range texts {
		if name := Legible(text); name != "" {
			return name
		}
	}
	return "n"
}
