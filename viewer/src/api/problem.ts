// Why there is no answer. The message is a sentence for people.
export class Problem extends Error {
  constructor(
    // As the server names it, or `unreachable`, or `not_in_report`.
    readonly code: string,
    message: string,
    // How long to wait before asking again, if that may help.
    readonly retrySecs: number | null = null,
  ) {
    super(message);
  }
}
