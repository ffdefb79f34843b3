package checkout

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"till/flow"
	"till/flow/store"
)

// The cost of a password, after RFC 9106's second recommended option.
const (
	argonMemory = 64 * 1024 // KiB
	argonKey    = 32
	argonSalt   = 16
)

// cost is what it takes to hash a password.
type cost struct {
	rounds, memory uint32
	threads        uint8
}

// usual is what a password costs that is kept from now on, unless it is said.
var usual = cost{rounds: 3, memory: argonMemory, threads: 4}

// PasswordsCost sets what it takes to hash a password that is kept from now on: so many
// KiB of memory, so many times. Tests set little, which log in thousands of times.
func (a *Accounts) PasswordsCost(kib, rounds uint32) {
	a.cost = cost{rounds: rounds, memory: kib, threads: 1}
}

// The bounds of guessing. Who guesses at one account is stopped for that
// account alone, and only where the guesses come from: its owner gets in from
// elsewhere. The bound of an address is wider, because many people may stand
// behind one.
const (
	tryWindow      = 15 * time.Minute
	triesAccount   = 10 // wrong passwords for one account from one address
	triesAddress   = 50 // wrong passwords from one address
	signUpsAddress = 100
	// maxTokens is how many browsers may be logged in to an account.
	maxTokens = 20
)

// LoggedIn is what logging in gives. The token is shown this once.
type LoggedIn struct {
	Token     string
	ExpiresAt time.Time
	Account   flow.Account
}

// guess counts a try of an account's password from an address, before it is
// made. forgive takes it back. Errors: rate_limited.
func (a *Accounts) guess(ctx context.Context, email, address string) (forgive func(), err error) {
	now, pair, place := a.desk(), loginPair(email, address), "login "+address
	if err := a.tries.begin(ctx, now, try{pair, triesAccount}, try{place, triesAddress}); err != nil {
		return nil, err
	}
	return func() { a.tries.takeBack(ctx, now, place, pair) }, nil
}

// loginPair names the tries for one account from one address.
// Its length does not depend on what somebody typed.
func loginPair(email, address string) string { return "login " + address + " " + flow.HashKey(email) }

// LogIn trades an e-mail address and a password for a dashboard token. address
// is where the call came from. An unknown address costs as much as a wrong
// password. A call's key belongs to the account, and is asked for only once the
// password was right. Errors: invalid_credentials, rate_limited.
func (a *Accounts) LogIn(ctx context.Context, email, password, address string, c Call) (Answer, error) {
	email = flow.FoldEmail(email)
	account, kept, err := a.recognise(ctx, email, password, address)
	if err != nil {
		return Answer{}, err
	}
	if c.Key != "" {
		c.Scope = "login/" + account.ID
		if c, err = a.slow(ctx, c, address); err != nil {
			return Answer{}, fmt.Errorf("log in: %w", err)
		}
	}
	text, err := flow.NewTokenText(a.ids.Rand)
	if err != nil {
		return Answer{}, err
	}
	now := a.desk()
	token := flow.Token{Hash: flow.HashKey(text), Account: account.ID, CreatedAt: now, ExpiresAt: now.Add(flow.DashboardLife)}
	answer, err := a.once(ctx, c, func(tx *store.Tx) (Made, string, error) {
		if err := unchanged(ctx, tx, account.ID, kept); err != nil {
			return Made{}, "", err
		}
		return Made{LoggedIn: LoggedIn{text, token.ExpiresAt, account}}, "", tx.AddToken(ctx, token, maxTokens)
	})
	return answer, wrap("log in", err)
}

// recognise finds the account that an e-mail address and a password are of, and
// that password as it was kept then.
func (a *Accounts) recognise(ctx context.Context, email, password, address string) (account flow.Account, kept string, err error) {
	forgive, err := a.guess(ctx, email, address)
	if err != nil {
		return flow.Account{}, "", err
	}
	account, found, err := a.db.AccountByEmail(ctx, email)
	if err != nil {
		return flow.Account{}, "", err
	}
	kept = account.PasswordHash
	if !found {
		kept = a.nobodysPassword()
	}
	right, err := a.verify(ctx, password, kept, address)
	if err != nil {
		forgive()
		return flow.Account{}, "", fmt.Errorf("log in: %w", err)
	}
	if !right || !found {
		return flow.Account{}, "", flow.Refuse(flow.CodeCredentials, "There is no account with this e-mail address and password.")
	}
	forgive()
	a.tries.drop(ctx, loginPair(email, address))
	account.PasswordHash = ""
	return account, kept, nil
}

// MaySignUp refuses an address that signs up too often. Errors: rate_limited.
func (a *Accounts) MaySignUp(ctx context.Context, address string) error {
	return a.tries.begin(ctx, a.desk(), try{"signup " + address, signUpsAddress})
}

// Dashboard finds whose dashboard token a text is. Errors: invalid_api_key,
// expired_api_key, revoked_api_key.
func (a *Accounts) Dashboard(ctx context.Context, text string) (flow.Token, error) {
	invalid := flow.Refuse(flow.CodeInvalidKey, "This call needs a dashboard token (dash_…) from POST /v1/auth/login.")
	if !flow.IsTokenText(text) {
		return flow.Token{}, invalid
	}
	hash := flow.HashKey(text)
	token, found, err := a.db.TokenByHash(ctx, hash)
	if err != nil {
		return flow.Token{}, err
	}
	if !found || subtle.ConstantTimeCompare([]byte(token.Hash), []byte(hash)) != 1 {
		return flow.Token{}, invalid
	}
	return token, token.Usable(a.desk())
}

// LogOut ends a dashboard token. One that was ended before can still ask for the
// answer of that: nobody else could, and it opens nothing else. Errors:
// revoked_api_key.
func (a *Accounts) LogOut(ctx context.Context, token flow.Token, c Call) (Answer, error) {
	c.Scope = "token/" + token.Hash
	answer, err := a.once(ctx, c, func(tx *store.Tx) (Made, string, error) {
		now := a.desk()
		if err := token.Usable(now); err != nil {
			return Made{}, "", err
		}
		return Made{}, "", tx.RevokeToken(ctx, token.Hash, now)
	})
	return answer, wrap("log out", err)
}

// nobodysPassword is compared with where there is no account, or one that has no
// password, so that this takes as long as where there is one. No password has it.
func (a *Accounts) nobodysPassword() string {
	return a.cost.encoded(make([]byte, argonSalt), make([]byte, argonKey))
}

// encoded is a hash as it is kept, with what it took.
func (c cost) encoded(salt, key []byte) string {
	code := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.memory, c.rounds, c.threads, code(salt), code(key))
}

// hash is a password as it is kept: argon2id with a salt of its own.
func (a *Accounts) hash(ctx context.Context, password, address string) (string, error) {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt)
	key, err := a.derive(ctx, address, password, salt, a.cost)
	return a.cost.encoded(salt, key), err
}

// verify says whether a password is the one that is kept.
func (a *Accounts) verify(ctx context.Context, password, kept, address string) (bool, error) {
	parts := strings.Split(kept, "$")
	var version int
	var c cost
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, nil // a password that nobody can know
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &c.memory, &c.rounds, &c.threads); err != nil || version != argon2.Version {
		return false, fmt.Errorf("a password is kept in a way this program does not know: %s, %s", parts[2], parts[3])
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return false, fmt.Errorf("read a kept password: %w", err)
	}
	want, err := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil {
		return false, fmt.Errorf("read a kept password: %w", err)
	}
	key, err := a.derive(ctx, address, password, salt, c)
	return err == nil && subtle.ConstantTimeCompare(key, want) == 1, err
}

// derive does the dear work, for whoever asks from an address.
func (a *Accounts) derive(ctx context.Context, address, password string, salt []byte, c cost) ([]byte, error) {
	done, err := a.queue.turn(ctx, address)
	if err != nil {
		return nil, err
	}
	defer done()
	key := argon2.IDKey([]byte(password), salt, c.rounds, c.memory, c.threads, argonKey)
	if c.memory >= argonMemory {
		runtime.GC() // left lying, what it took would have the program keep several times as much before it next tidies up
	}
	return key, nil
}
