<?php
// Opens a session for ₦5,000.00. Amounts are kobo.
// With the same Idempotency-Key it is done once, however often it is sent.

$answer = file_get_contents(getenv('TILL_URL') . '/v1/whatsapp/checkout/sessions', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => [
        'Authorization: Bearer ' . getenv('TILL_SECRET_KEY'),
        'Content-Type: application/json',
        'Idempotency-Key: ' . bin2hex(random_bytes(16)),
    ],
    'content' => json_encode(['amount' => 500000, 'customerEmail' => 'ada@example.com', 'mode' => 'headless']),
    'ignore_errors' => true,
]]));
$reply = json_decode($answer, true);
if (!($reply['status'] ?? false)) {
    fwrite(STDERR, $reply['error']['code'] . ': ' . $reply['error']['message'] . "\n");
    exit(1);
}
echo json_encode($reply['data']), "\n";
