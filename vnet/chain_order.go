package vnet

import "slices"

// MaxOrders bounds the orders of unordered chains that are tried for a request: all
// those of a chain of four functions.
const MaxOrders = 24

// Orders are requests that ask for the same in other orders of the functions of
// unordered chains, at most MaxOrders, the request itself first. Links of these chains
// are made anew. Chains that have the same functions in a request which was decided
// keep their order.
func (r Request) Orders(decided Request) []Request {
	list := []Request{r}
	for i, c := range r.Chains {
		if !c.Unordered || sameSet(c.Via, decided.viaOf(c.Name)) {
			continue
		}
		for _, of := range list[:len(list):len(list)] {
			for _, via := range permutations(c.Via, MaxOrders/len(list)) {
				if last, ok := r.Balancer(c); !ok || via[len(via)-1] == last.Name { // which no function follows
					list = append(list, of.ordered(i, via))
				}
			}
		}
	}
	return list
}

// ordered has the functions of a chain in an order.
func (r Request) ordered(chain int, via []string) Request {
	r.Chains = slices.Clone(r.Chains)
	r.Chains[chain].Via = via
	name := r.Chains[chain].Name
	for _, l := range r.ChainLinks(name) {
		r.forgetLink(l.Name)
	}
	r.Links = slices.DeleteFunc(slices.Clone(r.Links), func(l VirtualLink) bool { return l.Chain == name })
	r.Fill()
	return r
}

// TakeOrders gives unordered chains the orders that they have in a request which was
// decided, where their functions are the same.
func (r *Request) TakeOrders(was Request) {
	for i, c := range r.Chains {
		if before, ok := was.ChainOf(c.Name); c.Unordered && ok && before.Unordered && sameSet(c.Via, before.Via) && !slices.Equal(c.Via, before.Via) {
			*r = r.ordered(i, before.Via)
		}
	}
}

func (r Request) viaOf(chain string) []string {
	c, _ := r.ChainOf(chain)
	return c.Via
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// permutations are the orders of names but the one that they have, fewer than most.
func permutations(names []string, most int) (list [][]string) {
	var extend func(order []string)
	extend = func(order []string) {
		if len(list)+1 >= most {
			return
		}
		if len(order) == len(names) {
			if !slices.Equal(order, names) {
				list = append(list, slices.Clone(order))
			}
			return
		}
		for _, n := range names {
			if !slices.Contains(order, n) {
				extend(append(order, n))
			}
		}
	}
	extend(make([]string, 0, len(names)))
	return list
}
