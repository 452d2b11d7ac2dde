package plan

import "fmt"

// Owner says who alone states what a section has.
type Owner string

// Owners of sections.
const (
	ByServer Owner = ""      // the plan that the server hands out
	ByPaths  Owner = "paths" // agent/iplbd: prefixes of the fabric, by its link state or by a file
)

// Local is what a loop on a host wants of it: all items of the sections that it
// owns. An agent puts it beside the server's plan (Merge), so that one audit
// compares both with what there is.
type Local struct {
	Owner Owner
	Items []Item
}

// Merge is what a host shall have in all. An item in a section of another
// owner, or that is there twice, is an error: nobody can say then what the host
// shall have.
func Merge(central Host, local ...Local) (Host, error) {
	merged := central
	merged.items = nil
	there := make(map[itemID]bool)
	for _, l := range append([]Local{{ByServer, central.items}}, local...) {
		for _, item := range l.Items {
			s, err := sectionOf(item.Kind())
			switch {
			case err != nil:
				return Host{}, fmt.Errorf("%s: %w", item.Key(), err)
			case s.owner != l.Owner:
				return Host{}, fmt.Errorf("%s %s is stated by %s: its section is %s's", item.Kind(), item.Key(), l.Owner, s.owner)
			case there[id(item)]:
				return Host{}, fmt.Errorf("%s %s is stated twice", item.Kind(), item.Key())
			}
			there[id(item)] = true
		}
		merged.Add(l.Items...)
	}
	return merged, nil
}

// OwnerOf is the owner of a kind's section.
func OwnerOf(k Kind) Owner {
	s, _ := sectionOf(k)
	return s.owner
}

func (o Owner) String() string {
	if o == ByServer {
		return "the server"
	}
	return string(o)
}
