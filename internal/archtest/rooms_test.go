package archtest

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pureFloors is how many floors, from the bottom, are pure.
const pureFloors = 3

// floors reads the rooms of docs/architecture.md, by floor from the bottom to
// the top; small is the last table, rooms on which any floor may stand.
func floors(t *testing.T) (floor map[string]int, small map[string]bool) {
	t.Helper()
	_, text, _ := strings.Cut(readFile(t, filepath.Join(root, "docs/architecture.md")), "\n## The rooms\n")
	text, _, _ = strings.Cut(text, "\n## ")
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\| [^|]+ \\|$")
	floor, small = make(map[string]int), make(map[string]bool)
	for i, part := range strings.Split(text, "\n### ")[1:] {
		for _, m := range row.FindAllStringSubmatch(part, -1) {
			if _, twice := floor[m[1]]; twice || small[m[1]] {
				t.Errorf("docs/architecture.md has room %s twice", m[1])
			}
			if strings.HasPrefix(part, "Small things\n") {
				small[m[1]] = true
			} else {
				floor[m[1]] = i
			}
		}
	}
	return floor, small
}

// docs/architecture.md has a row for each room of the table, and no other.
func TestRoomsAreDescribed(t *testing.T) {
	floor, small := floors(t)
	rows := table(t)
	for room := range floor {
		if _, known := rows[room]; !known {
			t.Errorf("docs/architecture.md describes room %s, which is not in the table of internal/archtest", room)
		}
	}
	for room := range rows {
		if _, described := floor[room]; !described && !small[room] {
			t.Errorf("docs/architecture.md has no row for room %s: add \"| `%s` | what it is |\" under its floor", room, room)
		}
	}
}

// The floors of docs/architecture.md are the order of imports.
func TestFloorsStandOnLowerOnes(t *testing.T) {
	floor, small := floors(t)
	for room, may := range table(t) {
		for _, other := range may {
			other = strings.TrimSuffix(other, "/...")
			if other != "..." && !small[room] && !small[other] && floor[other] > floor[room] {
				t.Errorf("%s may import %s, which docs/architecture.md has on a higher floor", room, other)
			}
		}
	}
}

func TestLowerFloorsArePure(t *testing.T) {
	floor, _ := floors(t)
	for room, i := range floor {
		if i < pureFloors && !slices.Contains(Pure, room) {
			t.Errorf("docs/architecture.md has %s on a pure floor, and Pure of internal/archtest lacks it", room)
		}
	}
}

// TestFoldersStandInOneOrder: no import goes upward in Order, so a drawing of
// the folders at the top has neither an upward arrow nor a circle.
func TestFoldersStandInOneOrder(t *testing.T) {
	top := func(room string) string { return strings.SplitN(room, "/", 2)[0] }
	for _, s := range sources(t) {
		at := slices.Index(Order, top(s.room))
		if at < 0 {
			t.Errorf("%s: folder %s is not in Order of internal/archtest", s.path, top(s.room))
			continue
		}
		for _, path := range s.imports() {
			other, ours := strings.CutPrefix(path, "sublet/")
			if ours && !s.test && slices.Index(Order, top(other)) > at {
				t.Errorf("%s: imports %s, which is above %s", s.path, other, top(s.room))
			}
		}
	}
}
