import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command line tools one after the other in one JVM.
 *
 * A line of the input is the name of a class and its arguments, with tabs between them. The answer is what the tool
 * prints, and a line with a zero byte and the exit status.
 */
public class Tools {
    /** Ends a tool that wants to end its JVM; some catch it, so that what they print and want after that is dropped. */
    static class Exited extends RuntimeException { }

    static Integer status;

    /** Goes wherever the tool that runs now is to print. */
    static class Switched extends OutputStream {
        volatile OutputStream to = OutputStream.nullOutputStream();

        @Override
        public void write(int one) throws java.io.IOException {
            to.write(one);
        }

        @Override
        public void write(byte[] some, int offset, int length) throws java.io.IOException {
            to.write(some, offset, length);
        }
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Switched printed = new Switched();
        System.setOut(new PrintStream(printed, true, "UTF-8"));
        System.setErr(new PrintStream(printed, true, "UTF-8"));
        Exit.setExitProcedure((wanted, message) -> exit(printed, wanted));
        Exit.setHaltProcedure((wanted, message) -> exit(printed, wanted));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream text = new ByteArrayOutputStream();
            printed.to = text;
            status = null;
            int ended = run(line.split("\t", -1));
            printed.to = OutputStream.nullOutputStream();
            answers.print(text.toString("UTF-8"));
            answers.println("\n\0" + (status == null ? ended : status));
            answers.flush();
        }
    }

    static void exit(Switched printed, int wanted) {
        printed.to = OutputStream.nullOutputStream();
        if (status == null) status = wanted;
        throw new Exited();
    }

    static int run(String[] words) throws Exception {
        try {
            Object arguments = Arrays.copyOfRange(words, 1, words.length);
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, arguments);
            return 0;
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof Exited) return 0;
            failed.getCause().printStackTrace();
            return 1;
        }
    }
}
