package slice

import (
	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

// under is a switch of this process.
type under struct{ channel.Datapath }

func (u under) change(list ...of13.Message) (refused error) {
	for _, m := range list {
		if _, err := u.Do(m); err != nil && refused == nil {
			refused = err
		}
	}
	return refused
}

func (u under) ask(m of13.Message) ([]of13.Message, error) {
	r, err := u.Do(m)
	return []of13.Message{r}, err
}

func (u under) post(m of13.Message) error { return u.change(m) }

func (u under) atomic(run func() error) error { return u.Atomic(run) }
