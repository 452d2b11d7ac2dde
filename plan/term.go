package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Term is one server's time as the writer of a store: every server that
// writes plans into a store begins one, with a random name. The list of a
// store's terms is its history. A copy of the store lacks what came after it
// was made, so that plans of the lost part are told from plans that are known.
type Term struct {
	ID   string `json:"id"`   // "": before there were terms
	From uint64 `json:"from"` // its first revision
}

// Origin says which plan of a host it is: revisions alone are counted anew by
// another store. Zero: none.
type Origin struct {
	Term     string `json:"term,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
}

// Origin of a plan.
func (h Host) Origin() Origin { return Origin{h.Term, h.Revision} }

// Follows says whether a plan as handed out, with Terms, goes on from another:
// its store knows that it gave that one out, not later than this one.
func (h Host) Follows(held Origin) bool {
	if len(h.Terms) == 0 { // a server of a former version
		return held.Term == h.Term && held.Revision <= h.Revision
	}
	for i, t := range h.Terms {
		end := h.Revision + 1
		if i+1 < len(h.Terms) {
			end = min(end, h.Terms[i+1].From)
		}
		if t.ID == held.Term && t.From <= held.Revision && held.Revision < end {
			return true
		}
	}
	return false
}

// Adopts says whether the operator wants a host that holds another plan to
// follow this one.
func (h Host) Adopts(held Origin) bool { return h.Adopt != nil && *h.Adopt == held }

// Kept is the form in which an agent keeps a plan: of itself, without what
// only served to choose it.
func (h Host) Kept() Host {
	h.Terms, h.Adopt = nil, nil
	return h
}

// Shrunk is what an agent makes of a plan that is Half: what it and what the
// host has both allow. Nothing comes or grows before every host has removed
// what its plan removes.
func (h Host) Shrunk(have Host) Host {
	half := Meet(have, h)
	half.Host, half.Store, half.Term, half.Revision, half.Half = h.Host, h.Store, h.Term, h.Revision, true
	return half
}

// ErrDamaged is wrapped by Unseal.
var ErrDamaged = errors.New("damaged")

// sealed is how the text of a sealed plan ends: a checksum of the text without it.
const (
	seal      = `,"sum":"`
	sealedEnd = len(seal) + 2*sha256.Size + len(`"}`)
)

// Seal is the JSON of a plan with a checksum (SHA-256) as its last member,
// "sum": of the text without that member.
func Seal(h Host) ([]byte, error) { return SealIn(Form, h) }

// SealIn is Seal in a form of JSON; those above Form are Form.
func SealIn(form uint64, h Host) ([]byte, error) {
	text, err := h.encode(form)
	if err != nil {
		return nil, fmt.Errorf("encode the plan of %s: %w", h.Host, err)
	}
	return sealed(text), nil
}

// sealed is a JSON object with its checksum.
func sealed(text []byte) []byte {
	return fmt.Appendf(bytes.Clone(text[:len(text)-1]), `%s%x"}`, seal, sha256.Sum256(text))
}

// Unseal reads what Seal wrote, and plans of versions that knew neither
// checksums nor terms. What only a newer version knows is ErrUnknown, other
// text ErrDamaged.
func Unseal(text []byte) (h Host, err error) {
	text = bytes.TrimSpace(text)
	whole := false
	if i := len(text) - sealedEnd; i > 0 && bytes.HasPrefix(text[i:], []byte(seal)) {
		sum := sha256.Sum256(append(bytes.Clone(text[:i]), '}'))
		if whole = string(text[i+len(seal):]) == hex.EncodeToString(sum[:])+`"}`; !whole {
			return h, fmt.Errorf("%w: its checksum is another one", ErrDamaged)
		}
	}
	if err := json.Unmarshal(text, &h); whole && errors.Is(err, ErrUnknown) {
		return Host{}, err
	} else if err != nil {
		return Host{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if !whole && h.Term != "" {
		return Host{}, fmt.Errorf("%w: it has no checksum", ErrDamaged)
	}
	return h, nil
}
