package plan

import (
	"fmt"
)

// Op is what a Step does to its item.
type Op string

// Operations. Set changes an existing item in place, Add makes a missing one.
// Observe is no step: reading a host can fail too.
const (
	Delete  Op = "delete"
	Set     Op = "set"
	Add     Op = "add"
	Observe Op = "observe"
)

// Step is one change of one item; doing it twice is doing it once.
type Step struct {
	Op   Op
	Item Item // what shall be; for Delete, what is
	Was  Item // for Set, what is; else nil
}

func (s Step) String() string {
	return fmt.Sprintf("%s %s %s", s.Op, s.Item.Kind(), s.Item)
}
