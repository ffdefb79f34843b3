package wanet

import (
	"fmt"
	"strconv"
)

// freeNumbers is the pattern of numbers given to phones that ask for none: valid
// Nigerian mobiles of a block that nobody here owns.
const freeNumbers = "234900%07d"

// NewPhone adds a phone under a number, or under the next free one if none is
// given. A number that has a phone already yields that phone.
func (n *Network) NewPhone(number, pushName string) (*Phone, error) {
	if number == "" {
		var err error
		if number, err = n.freeNumber(); err != nil {
			return nil, err
		}
	}
	a, err := n.AddAccount(number, pushName)
	if err != nil {
		return nil, err
	}
	return a.AddPhone()
}

// freeNumber never gives a number twice, even one whose phone was removed: to the
// other side it would look like somebody with an old number.
func (n *Network) freeNumber() (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	last, _ := strconv.Atoi(string(n.j.get("lastfree")))
	for {
		last++
		number := fmt.Sprintf(freeNumbers, last)
		if n.accounts[number] != nil {
			continue
		}
		var t batch
		t.put("lastfree", []byte(strconv.Itoa(last)))
		if err := n.commit(&t); err != nil {
			return "", fmt.Errorf("giving out a number: %w", err)
		}
		return number, nil
	}
}

// Phone finds the phone of a number.
func (n *Network) Phone(number string) (*Phone, bool) {
	a, ok := n.Account(number)
	if !ok {
		return nil, false
	}
	return a.phoneOf()
}

// Phones lists the phones in order of their numbers.
func (n *Network) Phones() []*Phone {
	var out []*Phone
	for _, a := range n.Accounts() {
		if p, ok := a.phoneOf(); ok {
			out = append(out, p)
		}
	}
	return out
}

// RemovePhone takes a number off the network, with its chats, sessions and linked
// clients.
func (n *Network) RemovePhone(number string) error {
	p, ok := n.Phone(number)
	if !ok {
		return ErrNoAccount
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accounts[p.a.phone] != p.a {
		return ErrNoAccount
	}
	return n.remove(p.a)
}
