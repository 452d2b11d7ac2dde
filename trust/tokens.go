package trust

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sublet/vnet"
)

// Tokens are those of a server, in a file of their hashes. They may be used
// concurrently: who calls with one waits for no writing of the file.
type Tokens struct {
	path string
	now  func() time.Time
	kept atomic.Pointer[kept]

	writing sync.Mutex // who changes kept

	mu   sync.Mutex
	uses map[string]chan struct{} // by ID, of tokens that are used; closed when one is not kept any more
}

// ErrNoToken is of a token that is not there (any more).
var ErrNoToken = errors.New("no such token")

// OpenTokens reads a file of tokens, if it is there.
func OpenTokens(path string, now func() time.Time) (*Tokens, error) {
	t := &Tokens{path: path, now: now, uses: make(map[string]chan struct{})}
	var list []storedToken
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the tokens of %s: %w", path, err)
	}
	t.kept.Store(keptOf(list))
	return t, nil
}

// Create makes a token; text is shown once and kept nowhere.
func (t *Tokens) Create(wanted Token) (text string, made Token, err error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	wanted.Created, wanted.Expires = t.now().UTC().Truncate(time.Second), wanted.Expires.UTC().Truncate(time.Second)
	if err := wanted.check(t.now()); err != nil {
		return "", Token{}, err
	}
	list, has, account := t.valid(), 0, AccountOf(wanted.Tenant)
	for _, s := range list {
		if AccountOf(s.Tenant) == account {
			has++
		}
	}
	if has >= MostTokens {
		return "", Token{}, &vnet.FieldError{Problem: fmt.Sprintf("%s has %d tokens, the most there can be: revoke one", account, has)}
	}
	text, stored := newToken(wanted)
	return text, stored.Token, t.keep(append(list, stored))
}

// List is the tokens that a filter takes, in the order in which they were made.
func (t *Tokens) List(of func(vnet.TenantID) bool) []Token {
	tokens := []Token{}
	for _, s := range t.valid() {
		if of(s.Tenant) {
			tokens = append(tokens, s.Token)
		}
	}
	return tokens
}

// Revoke makes a token of tenants that a filter takes worthless.
func (t *Tokens) Revoke(id string, of func(vnet.TenantID) bool) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	list := t.valid()
	i := slices.IndexFunc(list, func(s storedToken) bool { return s.ID == id && of(s.Tenant) })
	if i < 0 {
		return ErrNoToken
	}
	return t.keep(slices.Delete(list, i, i+1))
}

// While is a context that ends when a token does: what is under way with it must
// not outlive it. end releases it.
func (t *Tokens) While(ctx context.Context, token *Token) (while context.Context, end func()) {
	ctx, cancel := context.WithDeadline(ctx, time.Now().Add(token.Expires.Sub(t.now())))
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.kept.Load().byID[token.ID]; !ok {
		cancel() // revoked a moment ago
		return ctx, cancel
	}
	use, ok := t.uses[token.ID]
	if !ok {
		use = make(chan struct{})
		t.uses[token.ID] = use
	}
	go func() {
		select {
		case <-use:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Any says whether there is a token with which somebody may call.
func (t *Tokens) Any() bool { return t != nil && t.now().Before(t.kept.Load().until) }

// CallerOf is who calls with a text; false: it is no token that is good now.
func (t *Tokens) CallerOf(text string) (Caller, bool) {
	s, ok := t.kept.Load().byID[idIn(text)]
	if !ok || !s.good(text, t.now()) {
		return Caller{}, false
	}
	return s.Caller(), true
}

// bearerProtocol begins the subprotocol of WebSocket by which a browser, which
// sends no header of a page's choice with it, tells a token.
const bearerProtocol = "sublet.bearer."

// BearerOf is the token that a request has; "": none. Such a request has no other
// rights than the token's, whoever sends it.
func BearerOf(header map[string][]string) string {
	for _, line := range header["Authorization"] {
		if kind, text, ok := strings.Cut(line, " "); ok && strings.EqualFold(kind, "Bearer") {
			return strings.TrimSpace(text)
		}
	}
	for _, line := range header["Sec-Websocket-Protocol"] {
		for word := range strings.SplitSeq(line, ",") {
			if text, ok := strings.CutPrefix(strings.TrimSpace(word), bearerProtocol); ok {
				return text
			}
		}
	}
	return ""
}

// WithoutBearer takes a token out of a request that is passed on.
func WithoutBearer(header map[string][]string) {
	delete(header, "Authorization")
	var words []string
	for _, line := range header["Sec-Websocket-Protocol"] {
		for word := range strings.SplitSeq(line, ",") {
			if word = strings.TrimSpace(word); !strings.HasPrefix(word, bearerProtocol) {
				words = append(words, word)
			}
		}
	}
	delete(header, "Sec-Websocket-Protocol")
	if len(words) > 0 {
		header["Sec-Websocket-Protocol"] = []string{strings.Join(words, ", ")}
	}
}
