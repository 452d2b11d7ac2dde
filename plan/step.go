package plan

import (
	"fmt"
)

// Op is what a Step does to its item.
type Op string

// Operations. Set changes an existing item in place, Add makes a missing one.
// Observe is no step: reading a host can fail too. Nor is Carry: what is there
// as planned does not carry what it shall; nor Await: whether it does is not
// known yet.
const (
	Delete  Op = "delete"
	Set     Op = "set"
	Add     Op = "add"
	Observe Op = "observe"
	Carry   Op = "carry"
	Await   Op = "await"
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
