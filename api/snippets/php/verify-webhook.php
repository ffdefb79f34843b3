<?php
// Verifies a webhook by the Standard Webhooks scheme.

function verify(string $secret, string $id, string $timestamp, string $signatures, string $body): bool
{
    if (abs(time() - (int) $timestamp) > 300) {
        return false;
    }
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret));
    $want = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $one) {
        if (hash_equals($want, $one)) {
            return true;
        }
    }
    return false;
}

// In a server: $_SERVER['HTTP_WEBHOOK_ID'] and so on, and file_get_contents('php://input').
$body = file_get_contents('php://stdin');
if (!verify(getenv('TILL_WEBHOOK_SECRET'), getenv('webhook_id'), getenv('webhook_timestamp'), getenv('webhook_signature'), $body)) {
    fwrite(STDERR, "the signature does not hold\n");
    exit(1);
}
echo "verified\n";
